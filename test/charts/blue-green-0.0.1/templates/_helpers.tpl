{{- define "name" -}}
{{ default .Chart.Name .Values.nameOverride }}
{{- end -}}
