{{- define "gitops.labels" -}}
app.kubernetes.io/part-of: gitops
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}
{{- define "gitops.container" -}}
image: "{{ .root.Values.image }}:{{ .root.Chart.AppVersion }}"
command: [/usr/local/bin/gitops, {{ .component }}]
envFrom: [{configMapRef: {name: gitops-settings}}]
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  readOnlyRootFilesystem: true
  seccompProfile: {type: RuntimeDefault}
{{- end }}
