// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Serving is what became of the requests of kubelets for serving certificates, and of what else other workers need of the cluster.
type Serving struct {
	// Approved are the Nodes whose requests were approved just now.
	Approved []string
	// Refused are the requests that were not, each with the reason, in the order of their names.
	Refused []string
	// Err is why they could not be listed or approved, or not all of them.
	Err error
	// NotTold is why the cluster does not say the version by which workers join.
	NotTold error
}

const (
	nodeUser  = "system:node:"
	nodeGroup = "system:nodes"
)

// subjectAltName is the one extension that a request may ask for (RFC 5280, 4.2.1.6).
var subjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

// OtherWorkers are the workers whose hosts another bootstrap provider makes Nodes. The kubelets of ours are given their serving
// certificates, and ask for none.
func (c *ControlPlane) OtherWorkers() []clusterv1.Machine {
	return slices.DeleteFunc(c.Workers(), func(m clusterv1.Machine) bool { return !IsOtherWorker(&m) })
}

// IsOtherWorker reports whether a Machine is such a worker.
func IsOtherWorker(m *clusterv1.Machine) bool {
	return !IsControlPlane(m) && m.Spec.Bootstrap.ConfigRef.Kind != "KubexmConfig"
}

// MayServe is why a kubelet's request for a serving certificate must not be approved, nil if it may: the one who asks is the Node of one of
// the Cluster's Machines, and asks for its own names and addresses, as the Machine's infrastructure says them, and for nothing else. A
// certificate of the cluster's authority for another's address would let its holder pass for another Node, or for the API server. nodes are
// all of the cluster's.
func (c *ControlPlane) MayServe(r *certificatesv1.CertificateSigningRequest, nodes []corev1.Node) error {
	if r.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		return fmt.Errorf("the signer is %s", r.Spec.SignerName)
	}
	node, isNode := strings.CutPrefix(r.Spec.Username, nodeUser)
	if !isNode || node == "" || !slices.Contains(r.Spec.Groups, nodeGroup) {
		return fmt.Errorf("%s, who asks, is no Node", r.Spec.Username)
	}
	machine, err := c.servedBy(node)
	if err != nil {
		return err
	}
	if err := servingUsages(r.Spec.Usages); err != nil {
		return err
	}
	request, err := parseRequest(r.Spec.Request)
	if err != nil {
		return err
	}
	if err := servingSubject(request, r.Spec.Username); err != nil {
		return err
	}
	return c.servedNames(request, node, machine, nodes)
}

// servedBy is the Machine whose Node it is.
func (c *ControlPlane) servedBy(node string) (*clusterv1.Machine, error) {
	var found []*clusterv1.Machine
	for i := range c.Machines {
		if c.Machines[i].Status.NodeRef.Name == node {
			found = append(found, &c.Machines[i])
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no Machine of the Cluster has the Node %s", node)
	case len(found) > 1:
		return nil, fmt.Errorf("%d Machines of the Cluster have the Node %s", len(found), node)
	case !found[0].DeletionTimestamp.IsZero():
		return nil, fmt.Errorf("the Machine %s is being deleted", found[0].Name)
	}
	if !IsOtherWorker(found[0]) {
		return nil, fmt.Errorf("the kubelet of the Machine %s is given its certificate, and has not to ask for one", found[0].Name)
	}
	return found[0], nil
}

// servingUsages are those that Kubernetes' signer of these certificates takes.
func servingUsages(usages []certificatesv1.KeyUsage) error {
	may := []certificatesv1.KeyUsage{
		certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth,
	}
	for _, usage := range usages {
		if !slices.Contains(may, usage) {
			return fmt.Errorf("the usage %q is none of a kubelet's server", usage)
		}
	}
	if !slices.Contains(usages, certificatesv1.UsageServerAuth) {
		return fmt.Errorf("the usages %v lack %q", usages, certificatesv1.UsageServerAuth)
	}
	return nil
}

// parseRequest reads one request in PEM, and nothing beside it.
func parseRequest(content []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(content)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("the request is not one CERTIFICATE REQUEST in PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the request is not readable: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the request is not signed with its own key: %w", err)
	}
	return request, nil
}

// servingSubject wants the user who asks and the group of Nodes, and nothing else.
func servingSubject(request *x509.CertificateRequest, user string) error {
	want := pkix.Name{CommonName: user, Organization: []string{nodeGroup}}
	if request.Subject.String() != want.String() || len(request.Subject.Names) != 2 {
		return fmt.Errorf("the subject is %s, not %s", request.Subject, want)
	}
	for _, extension := range request.Extensions {
		if !extension.Id.Equal(subjectAltName) {
			return fmt.Errorf("it asks for the extension %s", extension.Id)
		}
	}
	if len(request.EmailAddresses) > 0 || len(request.URIs) > 0 {
		return errors.New("it asks for e-mail addresses or URIs")
	}
	if len(request.DNSNames) == 0 && len(request.IPAddresses) == 0 {
		return errors.New("it asks for no name and no address")
	}
	return nil
}

// servedNames wants names and addresses of the Node's own. What infrastructures say of a Machine may be old, and another's by now: what
// another Node has, or the cluster's endpoint, is not this one's.
func (c *ControlPlane) servedNames(request *x509.CertificateRequest, node string, machine *clusterv1.Machine, nodes []corev1.Node) error {
	own, others := map[string]bool{node: true}, map[string]string{}
	for _, a := range machine.Status.Addresses {
		own[plain(a.Address)] = true
	}
	for i := range nodes {
		if nodes[i].Name == node {
			continue
		}
		others[nodes[i].Name] = nodes[i].Name
		for _, a := range nodes[i].Status.Addresses {
			others[plain(a.Address)] = nodes[i].Name
		}
	}
	api := c.apiNames()
	asked := slices.Clone(request.DNSNames)
	for _, address := range request.IPAddresses {
		asked = append(asked, plain(address.String()))
	}
	for _, one := range asked {
		switch {
		case !own[one]:
			return fmt.Errorf("%s is neither the Node's name nor in the status.addresses of the Machine %s", one, machine.Name)
		case others[one] != "":
			return fmt.Errorf("%s is in the status.addresses of the Machine %s, but the Node %s has it", one, machine.Name, others[one])
		case slices.Contains(api, one):
			return fmt.Errorf("%s is how the cluster's API is reached", one)
		case isLoopback(one):
			return fmt.Errorf("%s is every host's own", one)
		}
	}
	return nil
}

// apiNames are names and addresses by which the API server is reached, from where clients trust the same authority.
func (c *ControlPlane) apiNames() []string {
	shared := c.Shared()
	names := append([]string{c.Endpoint().Host, shared.ControlPlaneEndpoint.Domain, shared.ControlPlaneEndpoint.Address},
		shared.Kubernetes.APIServer.CertSANs...)
	names = append(names, shared.Network.APIAddresses()...)
	service := "kubernetes"
	for _, part := range []string{"", ".default", ".svc", "." + shared.DNS.ClusterDomain} {
		service += part
		names = append(names, service)
	}
	for i := range names {
		names[i] = plain(names[i])
	}
	return names
}

func isLoopback(text string) bool {
	address, err := netip.ParseAddr(text)
	return text == "localhost" || err == nil && (address.IsLoopback() || address.IsUnspecified())
}

// plain is an address in its one form, and a name as it is.
func plain(text string) string {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().WithZone("").String()
	}
	return text
}
