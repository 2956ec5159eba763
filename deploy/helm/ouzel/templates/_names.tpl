{{/* The name of everything: the release's, with the chart's where that does not say it. */}}
{{- define "ouzel.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ouzel.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ouzel.labels" -}}
{{ include "ouzel.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "ouzel.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "ouzel.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the API keys, or nothing where there are none. */}}
{{- define "ouzel.keysSecret" -}}
{{- if .Values.apiKeys.existingSecret -}}
{{- .Values.apiKeys.existingSecret -}}
{{- else if .Values.apiKeys.keys -}}
{{- include "ouzel.fullname" . }}-api-keys
{{- end -}}
{{- end -}}

{{/* The Secret with the store's URL, or nothing where nothing is kept. */}}
{{- define "ouzel.storeSecret" -}}
{{- if .Values.store.existingSecret -}}
{{- .Values.store.existingSecret -}}
{{- else if .Values.store.url -}}
{{- include "ouzel.fullname" . }}-store
{{- end -}}
{{- end -}}

{{/* The claim of the volume that SQLite is on. */}}
{{- define "ouzel.storeClaim" -}}
{{- .Values.store.volume.existingClaim | default (printf "%s-store" (include "ouzel.fullname" .)) -}}
{{- end -}}

{{/* Requests of this release's pods, as a selector of series. */}}
{{- define "ouzel.seriesSelector" -}}
namespace={{ .Release.Namespace | quote }},service="{{ include "ouzel.fullname" . }}-metrics"
{{- end -}}

{{- define "ouzel.inferencePool" -}}
{{- .Values.gateway.inferencePool.name | default (include "ouzel.fullname" .) -}}
{{- end -}}

{{/* What the container's environment has beside the options of the ConfigMap: what is secret, or known to the node only. */}}
{{- define "ouzel.environment" -}}
{{- with include "ouzel.storeSecret" . }}
- name: OUZEL_STORE_URL
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.store.secretKey }}
{{- end }}
{{- with .Values.adminKey.existingSecret }}
- name: OUZEL_ADMIN_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.adminKey.secretKey }}
{{- end }}
{{- with .Values.hub.existingSecret }}
- name: HF_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.hub.secretKey }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
