FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.11-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels kcm \
    && rm -rf /wheels \
    && useradd --uid 1000 --create-home kcm \
    && install -d -o kcm -g kcm -m 0700 /var/lib/kcm
ENV KCM_STATE_DIR=/var/lib/kcm PYTHONUNBUFFERED=1
USER kcm
WORKDIR /home/kcm
ENTRYPOINT ["kcm"]
CMD ["--help"]
