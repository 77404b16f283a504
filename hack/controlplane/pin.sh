#!/usr/bin/env bash
# Write versions/MINOR/go.mod and go.sum, from which build.sh builds an older Kubernetes: hack/controlplane/pin.sh v1.33.13
# What Kubernetes requires, it is built with; its parts, which its own go.mod finds beside it, come from the module proxy. Not every
# patch version is known to the checksum database with all its parts: take another then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
version=$1
minor=${version#v}
minor=${minor%.*}
theirs=$(go mod download -json "k8s.io/kubernetes@$version" | awk -F'"' '$2 == "GoMod" { print $4 }')
mkdir -p "versions/$minor"
cd "versions/$minor"
{
	printf '// Kubernetes %s, as its own go.mod has it. Written by hack/controlplane/pin.sh.\n' "$minor"
	printf 'module controlplane\n\ngo %s\n\nreplace (\n' "$(awk '$1 == "go" { print $2 }' ../../go.mod)"
	# Since 1.31 its parts are found by a workspace: they are what is required in version v0.0.0.
	awk -v "version=v0.${version#v1.}" '
		$2 == "=>" && $3 ~ /^\.\/staging\// || $1 ~ /^k8s\.io\// && $2 == "v0.0.0" { parts[$1] = 1 }
		END { for (part in parts) printf "\t%s => %s %s\n", part, part, version }' "$theirs" | sort
	printf ')\n\ntool (\n'
	printf '\tk8s.io/kubernetes/cmd/%s\n' kube-apiserver kube-controller-manager kube-scheduler kubectl
	printf ')\n\nrequire k8s.io/kubernetes %s\n\n' "$version"
	awk '/^require \(/ { inside = 1 } inside { print } /^\)/ { inside = 0 }' "$theirs"
} >go.mod
go mod edit -fmt
GOFLAGS='' GOWORK=off go mod tidy
