# Three images: `kcm` for all of kcm's processes, `redis` with its users and its start scripts, and
# `haproxy` for several API servers.
FROM python:3.13-slim AS build
WORKDIR /src
COPY locks/kcm.txt locks/
RUN pip wheel --no-cache-dir --wheel-dir /wheels --require-hashes -r locks/kcm.txt
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels --no-deps .

FROM python:3.13-slim AS kcm
# The wheels are mounted, not copied: a layer of them would stay in the image.
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels kcm \
    && useradd --uid 1000 --create-home kcm \
    && install -d -o kcm -g kcm -m 0700 /var/lib/kcm /var/lib/kcm-keys
ENV KCM_STATE_DIR=/var/lib/kcm PYTHONUNBUFFERED=1
USER kcm
WORKDIR /home/kcm
ENTRYPOINT ["kcm"]
CMD ["--help"]

FROM redis:7.4-alpine AS redis
# In the image and readable by its user, whatever umask the checkout was made with.
COPY --chmod=0755 deploy/redis/start.sh deploy/redis/sentinel.sh /etc/kcm/
COPY --chmod=0644 deploy/redis/users.acl /etc/kcm/users.acl
ENTRYPOINT ["/bin/sh", "/etc/kcm/start.sh"]

FROM haproxy:3.0-alpine AS haproxy
COPY --chmod=0644 deploy/haproxy/haproxy.cfg /etc/kcm/haproxy.cfg
ENTRYPOINT ["haproxy", "-W", "-db", "-f", "/etc/kcm/haproxy.cfg"]
