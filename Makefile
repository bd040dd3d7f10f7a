# Everything that this repository does for a person is a target here: `make help`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BUNDLE ?= build/bundle
KUBERNETES_VERSION ?= v1.36.3
KUBERNETES_PREVIOUS ?= v1.35.4
BUNDLE_PREVIOUS ?= build/bundle-$(KUBERNETES_PREVIOUS)
# BUNDLE_OFFLINE has packages of test hosts' operating system too.
BUNDLE_OFFLINE ?= build/bundle-offline
# BUNDLE_CALICO has Calico too.
BUNDLE_CALICO ?= build/bundle-calico
# BUNDLE_NETWORK_POLICY has Calico and Kubernetes' own tests of NetworkPolicy too.
BUNDLE_NETWORK_POLICY ?= build/bundle-network-policy
# BUNDLE_S3 has an object store for tests.
BUNDLE_S3 ?= build/bundle-s3
# BUNDLE_ADDONS has what addons take too.
BUNDLE_ADDONS ?= build/bundle-addons
# BUNDLE_KUBE_VIP has kube-vip too.
BUNDLE_KUBE_VIP ?= build/bundle-kube-vip
# BUNDLE_CRIO has CRI-O, and packages, of which conmon is one.
BUNDLE_CRIO ?= build/bundle-cri-o
# RUN selects tests of e2e and e2e-ha, and specs of e2e-upstream, by a regular expression; empty is all.
RUN ?=
# How long each fuzz target is fuzzed by make fuzz, and by make test.
FUZZTIME ?= 3m
TEST_FUZZTIME ?= 30s
export FUZZ_GUIDED ?= yes
QUICKSTART := .kubexm/quickstart
# RELEASE is the version that release-manifests and release-image write to RELEASE_OUT.
RELEASE ?= v0.1.0
RELEASE_OUT ?= build/release
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

LDFLAGS := -s -w -X main.version=$(VERSION)

# Tools, pinned here and nowhere else.
CONTROLLER_GEN := $(GO) run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0
CRD_REF_DOCS := $(GO) run github.com/elastic/crd-ref-docs@v0.3.0
GOLANGCI_LINT_VERSION := v2.15.0
GOTESTSUM_VERSION := v1.13.0
TOOLS := $(abspath build/tools)
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOTESTSUM := $(TOOLS)/gotestsum-$(GOTESTSUM_VERSION)
ASSETS := $(abspath build/assets)

# The same flags for all that is compiled here, so that programs and tests share what the compiler has made, with the artifacts'
# builds too where they use the same modules. Nothing of ours needs cgo. What debuggers read is a tenth of the compiler's time, and
# the programs are stripped: say GOFLAGS=-trimpath to have it.
export GOFLAGS ?= -trimpath -gcflags=all=-dwarf=false
export CGO_ENABLED ?= 0
export KUBEBUILDER_ASSETS := $(ASSETS)
export KUBEXM_BUNDLE := $(abspath $(BUNDLE))

##@ The two that matter

.PHONY: quickstart
quickstart: artifacts ## Two real hosts become a Kubernetes cluster, and prove that it works
	hack/quickstart.sh

.PHONY: test
test: test-unit test-fuzz test-envtest test-hosts ## Unit tests, golden plans, 30 s of each fuzz target, API server tests, steps on a real host

##@ Run

.PHONY: quickstart-clean
quickstart-clean: ## Delete the quickstart's cluster and its hosts
	hack/quickstart.sh clean

.PHONY: build
build: ## Compile bin/kubexm and bin/manager
	$(GO) build -ldflags "$(LDFLAGS)" -o bin/ ./cmd/kubexm ./cmd/manager

bin/kubexm: FORCE # the command alone, which is all that a quickstart takes
	hack/patience.sh "compiling kubexm" $(GO) build -ldflags "$(LDFLAGS)" -o bin/ ./cmd/kubexm

.PHONY: artifacts
artifacts: deps bin/kubexm ## Build or reuse Kubernetes and all else that a cluster needs, as a verified bundle
	bin/kubexm bundle create --kubernetes-version $(KUBERNETES_VERSION) --output $(BUNDLE)
	@mkdir -p $(ASSETS)
	@ln -sf $(abspath $(BUNDLE))/kubernetes/$(KUBERNETES_VERSION)/*/kube-apiserver $(abspath $(BUNDLE))/kubernetes/$(KUBERNETES_VERSION)/*/kube-controller-manager $(abspath $(BUNDLE))/kubernetes/$(KUBERNETES_VERSION)/*/kubectl $(abspath $(BUNDLE))/etcd/*/*/etcd $(ASSETS)/

.PHONY: artifacts-previous
artifacts-previous: deps bin/kubexm ## Build or reuse the same for the minor version before, to upgrade from
	bin/kubexm bundle create --kubernetes-version $(KUBERNETES_PREVIOUS) --output $(BUNDLE_PREVIOUS)

.PHONY: artifacts-offline
artifacts-offline: deps bin/kubexm ## Build or reuse the same with packages of the hosts' operating system, for hosts that reach no mirror
	bin/kubexm bundle create --kubernetes-version $(KUBERNETES_VERSION) --os debian/12 --output $(BUNDLE_OFFLINE)

.PHONY: artifacts-kube-vip
artifacts-kube-vip: deps bin/kubexm ## Build or reuse the same with kube-vip, which is optional
	bin/kubexm bundle create --kubernetes-version $(KUBERNETES_VERSION) --with kube-vip --output $(BUNDLE_KUBE_VIP)

.PHONY: artifacts-cri-o
artifacts-cri-o: deps bin/kubexm ## Build or reuse the same with CRI-O, and packages as above
	bin/kubexm bundle create --kubernetes-version $(KUBERNETES_VERSION) --with cri-o --os debian/12 --output $(BUNDLE_CRIO)

.PHONY: artifacts-calico
artifacts-calico: deps bin/kubexm ## Build or reuse the same with Calico, for clusters whose network that is
	bin/kubexm bundle create --kubernetes-version $(KUBERNETES_VERSION) --with calico --output $(BUNDLE_CALICO)

.PHONY: artifacts-network-policy
artifacts-network-policy: deps bin/kubexm ## Build or reuse the same with Calico and Kubernetes' own tests of NetworkPolicy
	bin/kubexm bundle create --kubernetes-version $(KUBERNETES_VERSION) --with calico --with network-policy-tests --output $(BUNDLE_NETWORK_POLICY)

.PHONY: artifacts-addons
artifacts-addons: deps bin/kubexm ## Build or reuse the same with what addons take, for clusters that have some
	bin/kubexm bundle create --kubernetes-version $(KUBERNETES_VERSION) --with metrics-server --output $(BUNDLE_ADDONS)

.PHONY: artifacts-s3
artifacts-s3: deps bin/kubexm ## Build or reuse the same with an object store, for tests of backups in buckets
	bin/kubexm bundle create --kubernetes-version $(KUBERNETES_VERSION) --with versitygw --output $(BUNDLE_S3)

.PHONY: FORCE
FORCE:

.PHONY: deps
deps: ## Install the distribution packages that building and testing need
	@hack/patience.sh "installing packages" hack/deps.sh

##@ Test

.PHONY: test-unit
test-unit: $(GOTESTSUM) ## Unit tests and golden plans; no Docker, no artifacts
	$(GOTESTSUM) --format pkgname-and-test-fails -- -timeout 20m ./...

.PHONY: test-fuzz
test-fuzz: ## Each fuzz target for TEST_FUZZTIME (30s; CI has 5s, not guided by coverage), one per processor at once
	GO=$(GO) hack/fuzz.sh $(TEST_FUZZTIME)

.PHONY: fuzz
fuzz: ## Each fuzz target for FUZZTIME (3m), RUN=FuzzFrames for one; what is found is kept as a seed
	GO=$(GO) hack/fuzz.sh $(FUZZTIME) '$(RUN)'

.PHONY: test-envtest
test-envtest: $(GOTESTSUM) artifacts ## Reconcilers, webhooks and the embedded plane against a real API server
	$(GOTESTSUM) --format pkgname-and-test-fails -- -tags envtest -p 2 -parallel 4 -timeout 20m $$(hack/tagged.sh envtest)

.PHONY: test-hosts
test-hosts: $(GOTESTSUM) artifacts artifacts-offline ## Steps and the SSH host on real hosts (containers with systemd and sshd)
	$(GOTESTSUM) --format pkgname-and-test-fails -- -tags hosts -p 2 -timeout 45m -skip '^TestEveryFieldHasAnEffect$$' $$(hack/tagged.sh hosts)

.PHONY: test-s3
test-s3: $(GOTESTSUM) artifacts-s3 ## Backups of etcd in a bucket of a real object store
	KUBEXM_BUNDLE_S3=$(abspath $(BUNDLE_S3)) $(GOTESTSUM) --format standard-verbose -- -tags s3 -timeout 10m -count=1 ./pkg/backup

.PHONY: e2e
e2e: $(GOTESTSUM) artifacts ## A real cluster by objects: create, scale 1 → 3 → 1, delete a Machine, delete the Cluster
	$(GOTESTSUM) --format standard-verbose -- -tags e2e -timeout 40m -count=1 -run '$(RUN)' ./test/e2e/...

.PHONY: pairing-byoh
pairing-byoh: ## A cluster on the hosts of BYOH's own programs: BYOH=<directory of its release>, see docs/guides/other-infrastructure.md
	@test -d '$(BYOH)' || { echo 'say where the release is: make pairing-byoh BYOH=<directory>' >&2; exit 1; }
	BYOH=$(abspath $(BYOH)) $(MAKE) e2e RUN='^TestBYOH$$'

.PHONY: pairing-metal3
pairing-metal3: ## A cluster on the hosts of Metal3's own manager: METAL3=<directory of its release>
	@test -d '$(METAL3)' || { echo 'say where the release is: make pairing-metal3 METAL3=<directory>' >&2; exit 1; }
	METAL3=$(abspath $(METAL3)) $(MAKE) e2e RUN='^TestMetal3$$'

.PHONY: e2e-ha
e2e-ha: $(GOTESTSUM) artifacts artifacts-offline ## Highly available clusters of several kinds; hosts fail under a write load (RUN=TestFailover for one)
	$(GOTESTSUM) --format standard-verbose -- -tags ha -p 1 -timeout 90m -count=1 -run '$(RUN)' $$(hack/tagged.sh ha)

.PHONY: clusterctl
clusterctl: $(GOTESTSUM) artifacts artifacts-previous ## A management cluster on real hosts, by clusterctl: init, generate, scale, move, upgrade, delete
	$(GOTESTSUM) --format standard-verbose -- -tags clusterctl -timeout 90m -count=1 -run '$(RUN)' ./test/clusterctl/...

.PHONY: e2e-upstream
e2e-upstream: $(GOTESTSUM) artifacts ## Cluster API's own end-to-end specs, with our providers on real hosts (RUN=pool.QuickStart for one)
	$(GOTESTSUM) --format standard-verbose -- -tags upstream -timeout 60m -count=1 ./test/upstream/... -ginkgo.v -ginkgo.focus='$(RUN)'

.PHONY: faults
faults: $(GOTESTSUM) artifacts ## Kill, cut, pause, fill and corrupt, at every step boundary (FAULTS_BUDGET=10m for a sample, RUN=TestLine for one)
	$(GOTESTSUM) --format standard-verbose -- -tags faults -timeout 120m -count=1 -run '$(RUN)' ./test/faults/...

.PHONY: faults-upgrade
faults-upgrade: $(GOTESTSUM) artifacts artifacts-previous ## Kill an upgrade at every step boundary
	$(GOTESTSUM) --format standard-verbose -- -tags 'faults previous' -timeout 40m -count=1 -run TestUpgradeIsKilled ./test/faults/...

.PHONY: suites
suites: ## List the long suites, of which CI runs one for each commit (hack/suites.sh run NAME for one)
	@hack/suites.sh list

.PHONY: all-suites
all-suites: ## Run all long suites, one after the other (hours)
	hack/suites.sh all

.PHONY: bench
bench: artifacts artifacts-previous ## Speed and memory side by side with a plain shell; writes build/bench.json
	$(GO) run ./test/bench

##@ Release

.PHONY: release-manifests
release-manifests: ## Write the providers' components and templates of RELEASE as clusterctl reads them from a directory
	$(GO) run ./hack/release -version $(RELEASE) -out $(RELEASE_OUT) manifests

.PHONY: release-image
release-image: ## Write the manager's image of RELEASE as an archive, without a container engine
	$(GO) run ./hack/release -version $(RELEASE) -out $(RELEASE_OUT) image

##@ Keep

.PHONY: generate
generate: ## Regenerate deepcopy, CRDs, RBAC and the API reference
	CONTROLLER_GEN="$(CONTROLLER_GEN)" CRD_REF_DOCS="$(CRD_REF_DOCS)" hack/generate.sh

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Lint
	$(GOLANGCI_LINT) run --timeout 15m ./...

.PHONY: verify
verify: generate lint ## Regenerate, tidy, vet, lint, architecture; fails if anything changes
	$(GO) mod tidy
	$(GO) vet -tags 'envtest hosts e2e ha faults previous clusterctl upstream' ./...
	$(GO) test ./internal/architecture/...
	hack/clean-tree.sh

$(GOLANGCI_LINT):
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(TOOLS)/golangci-lint $@

$(GOTESTSUM):
	GOBIN=$(TOOLS) $(GO) install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	mv $(TOOLS)/gotestsum $@

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*##/ {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
