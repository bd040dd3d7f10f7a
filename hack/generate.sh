#!/bin/sh
# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes what is made of the types: deep copies, definitions, webhook configurations and roles.
set -eu
cd "$(dirname "$0")/.."
generator=${CONTROLLER_GEN:-go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0}

$generator object:headerFile=hack/boilerplate.go.txt paths=./pkg/spec
for provider in bootstrap controlplane infrastructure; do
	source=./$provider
	[ $provider = infrastructure ] && source=./exp/infrastructure
	# A kind that is gone must not leave its definition behind.
	rm -f config/crd/$provider/*_*.yaml
	$generator object:headerFile=hack/boilerplate.go.txt paths=$source/api/...
	$generator crd paths=$source/api/... output:crd:artifacts:config=config/crd/$provider
	$generator webhook paths=$source/webhooks/... output:webhook:artifacts:config=config/webhook/$provider
	$generator rbac:roleName=manager-role paths=$source/... output:rbac:artifacts:config=config/$provider
done
${CRD_REF_DOCS:-go run github.com/elastic/crd-ref-docs@v0.3.0} --source-path=. --config=hack/crd-ref-docs.yaml --renderer=markdown \
	--output-path=docs/reference/api.md --log-level=ERROR
(cd exp/embedded/crds && ./copy.sh)
