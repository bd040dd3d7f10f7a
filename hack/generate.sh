#!/bin/sh
# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes what is made of the types: deep copies, definitions, webhook configurations and roles.
set -eu
cd "$(dirname "$0")/.."
generator=${CONTROLLER_GEN:-go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0}

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
$generator object:headerFile=hack/boilerplate.go.txt paths=./pkg/spec
for provider in bootstrap controlplane infrastructure; do
	source=./$provider
	[ $provider = infrastructure ] && source=./exp/infrastructure
	$generator object:headerFile=hack/boilerplate.go.txt paths=$source/api/...
	# Into a directory of their own first: who compiles meanwhile embeds all of them.
	$generator crd paths=$source/api/... output:crd:artifacts:config="$made/$provider"
	for definition in config/crd/$provider/*_*.yaml; do
		# A kind that is gone must not leave its definition behind.
		[ -e "$made/$provider/${definition##*/}" ] || rm -f "$definition"
	done
	for definition in "$made/$provider"/*; do
		cmp -s "$definition" "config/crd/$provider/${definition##*/}" || cp "$definition" config/crd/$provider/
	done
	$generator webhook paths=$source/webhooks/... output:webhook:artifacts:config=config/webhook/$provider
	# Who decides on the control plane decides when its workers follow.
	roles=$source/...
	[ $provider = controlplane ] && roles="$source/...;./exp/inplace/..."
	[ $provider = bootstrap ] && roles="$source/...;./exp/runtimeextension/..."
	$generator rbac:roleName=manager-role "paths=$roles" output:rbac:artifacts:config=config/$provider
done
# What API servers validate by, pkg/spec validates by.
CGO_ENABLED=0 go test -count=1 -run '^TestSchemasOfSpec$' ./config/crd -update >"$made/schemas" || { cat "$made/schemas" >&2; exit 1; }
# What hooks and limits may name is what plans have.
CGO_ENABLED=0 go test -count=1 -run '^TestTasksAreKnown$' ./pkg/pipeline -update >"$made/tasks" || { cat "$made/tasks" >&2; exit 1; }
${CRD_REF_DOCS:-go run github.com/elastic/crd-ref-docs@v0.3.0} --source-path=. --config=hack/crd-ref-docs.yaml --renderer=markdown \
	--output-path=docs/reference/api.md --log-level=ERROR
(cd exp/embedded/crds && ./copy.sh)
