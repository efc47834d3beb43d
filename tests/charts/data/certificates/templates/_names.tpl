{{- define "certificates.labels" -}}
app.kubernetes.io/name: {{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}
{{- define "certificates.pod" -}}
serviceAccountName: {{ .root.Release.Name }}-{{ .component }}
{{- with .root.Values.placement }}
{{ toYaml . }}
{{- end }}
terminationGracePeriodSeconds: 1
securityContext: {runAsNonRoot: {{ empty .root.Values.command }}, seccompProfile: {type: RuntimeDefault}}
containers:
- name: {{ .component }}
  image: "{{ .root.Values.image }}-{{ .component }}:v{{ .root.Chart.AppVersion }}"
  {{- with .root.Values.command }}
  command: {{ toYaml . | nindent 4 }}
  {{- end }}
  args: [{{ .component }}]
  env:
  - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
  - {name: RELEASE, value: {{ .root.Release.Name }}}
  - {name: ELECTION_NAMESPACE, value: {{ .root.Values.leaderElection.namespace }}}
  {{- range $name, $value := .root.Values.environment }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
{{- end }}
