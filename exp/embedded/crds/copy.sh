#!/bin/sh
# Copyright 2026 The cluster-api-provider-kubexm Authors.
# SPDX-License-Identifier: Apache-2.0

# Copies from the module cache what crds.go embeds.
set -eu
module=$(go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)
rm -rf cluster-api
mkdir -p cluster-api/crd
# The kinds whose reconcilers run, the drain rules that the Machine reconciler reads, and the machine pools that the
# Cluster reconciler watches.
for kind in clusters machines machinesets machinedeployments machinehealthchecks machinedrainrules machinepools; do
	install -m 0644 "$module/core/config/crd/bases/cluster.x-k8s.io_$kind.yaml" cluster-api/crd/
done
install -m 0644 "$module/core/config/webhook/manifests.yaml" cluster-api/webhook.yaml
go list -m sigs.k8s.io/cluster-api >cluster-api/VERSION
