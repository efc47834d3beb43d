{{- define "ingress.labels" -}}
app.kubernetes.io/name: ingress
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "ingress.hook" -}}
helm.sh/hook: pre-install,pre-upgrade,post-install,post-upgrade
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
