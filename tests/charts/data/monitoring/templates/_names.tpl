{{- define "monitoring.labels" -}}
app: monitoring
release: {{ .root.Release.Name }}
component: {{ .component }}
{{- end }}
