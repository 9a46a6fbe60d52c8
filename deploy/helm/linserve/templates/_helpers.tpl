{{/* An object of deploy/kubernetes or deploy/monitoring, as this release has it: of (list $ PATH), as YAML. */}}
{{- define "linserve.object" -}}
{{- $root := index . 0 -}}
{{- $text := $root.Files.Get (index . 1) -}}
{{- $named := printf "${1}%s${3}" $root.Release.Name -}}
{{- $text = regexReplaceAll "(?m)^( *(?:- )?(?:name|serviceAccountName): )(linserve)(-headless|-scaling|)$" $text $named -}}
{{- $text = regexReplaceAll "(app.kubernetes.io/instance: )(linserve)()" $text $named -}}
{{- $object := fromYaml $text -}}
{{- $labels := merge (dict) ($object.metadata.labels | default dict) (fromYaml (include "linserve.labels" $root)) -}}
{{- $_ := set $object.metadata "labels" $labels -}}
{{- toYaml $object -}}
{{- end }}

{{/* As those of deploy/kubernetes/base/kustomization.yaml. */}}
{{- define "linserve.labels" -}}
app.kubernetes.io/name: linserve
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: linserve
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "linserve.image" -}}
{{- $built := printf "%s-%s" .Chart.AppVersion (ternary "cuda" "cpu" (gt (int .Values.gpus) 0)) -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default $built }}
{{- end -}}
{{- end }}

{{/* Whole seconds of a number, or of a text with a unit such as "90s", as the server reads them. */}}
{{- define "linserve.seconds" -}}
{{- $units := dict "ns" 0.000000001 "us" 0.000001 "ms" 0.001 "s" 1 "m" 60 "min" 60 "h" 3600 "d" 86400 -}}
{{- if kindIs "string" . -}}
{{- mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexFind "[a-z]+$" .)) | ceil | printf "%.0f" -}}
{{- else -}}
{{- ceil . | printf "%.0f" -}}
{{- end -}}
{{- end }}

{{- define "linserve.config" -}}
kubernetes.json: {{ .Files.Get "kubernetes/base/kubernetes.json" | toJson }}
linserve.json: {{ .Values.config | toPrettyJson | toJson }}
{{- end }}

{{/* The paths of what components change in the Deployment, as far as the values ask for them. */}}
{{- define "linserve.components" -}}
{{- if gt (int .Values.gpus) 0 }}
- kubernetes/overlays/gpu/deployment.yaml
{{- end }}
{{- if .Values.models.image }}
- kubernetes/components/models-from-image/deployment.yaml
{{- end }}
{{- if .Values.tls.secret }}
- kubernetes/components/tls/deployment.yaml
{{- end }}
{{- if .Values.tokens.secret }}
- kubernetes/components/tokens/deployment.yaml
{{- end }}
{{- if .Values.openshift }}
- kubernetes/components/openshift/deployment.yaml
{{- end }}
{{- end }}

{{/* Changes an object by a patch, as kustomize does: of (list OBJECT PATCH). What is null goes. Lists of named things
are merged by their names, and of other things they are joined. */}}
{{- define "linserve.patch" -}}
{{- $object := index . 0 -}}
{{- range $key, $change := index . 1 -}}
{{- $old := get $object $key -}}
{{- if kindIs "invalid" $change -}}
{{- $_ := unset $object $key -}}
{{- else if and (kindIs "map" $change) (kindIs "map" $old) -}}
{{- include "linserve.patch" (list $old $change) -}}
{{- else if and (kindIs "slice" $change) (kindIs "slice" $old) -}}
{{- range $item := $change -}}
{{- $found := dict -}}
{{- range $old }}{{ if and .name (eq .name (get $item "name")) }}{{ $found = . }}{{ end }}{{ end -}}
{{- if and $found (ne $key "volumeMounts") -}}
{{- include "linserve.patch" (list $found $item) -}}
{{- else -}}
{{- $old = append $old $item -}}
{{- end -}}
{{- end -}}
{{- $_ := set $object $key $old -}}
{{- else -}}
{{- $_ := set $object $key $change -}}
{{- end -}}
{{- end -}}
{{- end }}
