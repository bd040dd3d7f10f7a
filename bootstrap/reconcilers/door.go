// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// defaultUser is whom the bootstrap data makes on a host where nobody says who logs in.
const defaultUser = "kubexm"

// Keys of the Secret by which a host is known, <config>-host-key.
const (
	// birthKey is the private host key that the bootstrap data brings, until the host has one that was made on it.
	birthKey       = "birth-key"
	birthPublicKey = "birth-key.pub"
	// hostPublicKey is the one that was made on the host.
	hostPublicKey = "host-key.pub"
)

// hostKeys are the keys by which a host is known that the bootstrap data is for. Where somebody declares them, there are none.
type hostKeys struct {
	birth        secret.Value
	birthPublic  string
	pinned       string
	areDeclared  bool
	secretExists bool
}

// expected is the key that the host must show, "" before any is known.
func (k *hostKeys) expected() string { return cmp.Or(k.pinned, k.birthPublic) }

// doorway is how a host is entered that the bootstrap data opens.
type doorway struct {
	access spec.Access
	keys   hostKeys
	closed accessRecord
}

// openDoor makes what the bootstrap data brings to the host, where its infrastructure needs that, and does not make anew what hosts may
// already have: the Cluster's key, and the host's.
func (r *KubexmConfigReconciler) openDoor(ctx context.Context, s *scope) error {
	if err := r.findDoor(ctx, s); err != nil || s.door == nil {
		return err
	}
	if s.config.Spec.Access.Credentials.Secret() == "" && s.door.closed.state != accessClosed {
		if err := r.ensureClusterKey(ctx, s); err != nil {
			return err
		}
	}
	if s.door.keys.areDeclared || s.door.keys.secretExists {
		return nil
	}
	return r.makeHostKey(ctx, s)
}

// findDoor reads how the host is entered, without making anything. s.door stays nil where no bootstrap data opens it.
func (r *KubexmConfigReconciler) findDoor(ctx context.Context, s *scope) error {
	if s.adapter == nil || s.cluster == nil || !s.adapter.HasDoor() {
		return nil
	}
	s.door = &doorway{access: *s.config.Spec.Access.DeepCopy()}
	a, keys := &s.door.access, &s.door.keys
	a.User = cmp.Or(a.User, defaultUser)
	switch c := &a.Credentials; {
	case c.Secret() != "":
	case c.IsUserCA():
		c.UserCA.SecretRef.Name = clusterAuthorityName(s.cluster)
	default:
		c.SecretRef.Name = clusterKeyName(s.cluster)
	}
	if keys.areDeclared = len(a.HostKeys.Pinned) > 0; keys.areDeclared {
		return nil
	}
	found := &corev1.Secret{}
	switch err := r.Reader.Get(ctx, hostKeyOf(s.config), found); {
	case apierrors.IsNotFound(err):
		keys.pinned, s.door.closed = s.config.Status.Host.HostKey, accessShown(s.config)
	case err != nil:
		return fmt.Errorf("get the Secret %s: %w", hostKeyOf(s.config).Name, err)
	case !metav1.IsControlledBy(found, s.config):
		return notOurs(hostKeyOf(s.config).Name, "the keys by which the host is known")
	default:
		keys.secretExists = true
		keys.birth, keys.birthPublic = secret.New(found.Data[birthKey]), string(found.Data[birthPublicKey])
		keys.pinned, s.door.closed = string(found.Data[hostPublicKey]), accessIn(found.Data)
	}
	if key := keys.expected(); key != "" {
		a.HostKeys.Pinned = []string{key}
	}
	return nil
}

// notOurs says that a Secret is somebody else's.
func notOurs(name, has string) error {
	return fmt.Errorf("the Secret %s, which is to have %s, exists and is not this KubexmConfig's, so that it is left as it is: "+
		"give the KubexmConfig (or its Machine) another name, or delete the Secret if nobody needs what it has", name, has)
}

func clusterKeyName(cluster *clusterv1.Cluster) string { return cluster.Name + "-ssh" }

// clusterAuthorityName does not end in -ca, as the authority's of another Cluster does.
func clusterAuthorityName(cluster *clusterv1.Cluster) string { return cluster.Name + "-ssh-authority" }

func hostKeyOf(c *bootstrapv1.KubexmConfig) client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name + "-host-key"}
}

// ensureClusterKey makes the key pair that the Cluster's hosts let in, or that of the authority whose certificates they do. It is made
// once: hosts that know it let nobody in with another.
func (r *KubexmConfigReconciler) ensureClusterKey(ctx context.Context, s *scope) error {
	key := client.ObjectKey{Namespace: s.config.Namespace, Name: s.door.access.Credentials.Secret()}
	what, comment := "key that the Cluster's hosts let in", "cluster "+s.cluster.Name
	if s.door.access.Credentials.IsUserCA() {
		what, comment = "key of the authority whose certificates the Cluster's hosts let in", "users of cluster "+s.cluster.Name
	}
	exists, err := r.secretExists(ctx, key)
	if err != nil || exists {
		return err // what it has is checked when it is used
	}
	user, err := r.userOfClusterKey(ctx, s)
	if err != nil {
		return err
	}
	if user != "" {
		// Another host's reconcile may have made both since.
		if exists, err := r.secretExists(ctx, key); err != nil || exists {
			return err
		}
		return fmt.Errorf("the Secret %s with the %s does not exist, and the bootstrap data of the KubexmConfig %s authorizes it: "+
			"restore the Secret from a backup, or create it with one that the user of each host authorizes (type %s)",
			key.Name, what, user, corev1.SecretTypeSSHAuth)
	}
	private, err := ssh.NewUserKey(comment)
	if err != nil {
		return fmt.Errorf("make a key for the Cluster's hosts: %w", err)
	}
	err = r.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: s.cluster.Name, UID: s.cluster.UID,
			}},
		},
		Type: corev1.SecretTypeSSHAuth,
		Data: map[string][]byte{infra.KeyPrivateKey: private.Reveal()},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) { // another host's reconcile was first
		return fmt.Errorf("create the Secret %s: %w", key.Name, err)
	}
	return nil
}

// secretExists asks the API server.
func (r *KubexmConfigReconciler) secretExists(ctx context.Context, key client.ObjectKey) (bool, error) {
	err := r.Reader.Get(ctx, key, &corev1.Secret{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get the Secret %s: %w", key.Name, err)
	}
	return true, nil
}

// userOfClusterKey is a KubexmConfig of the Cluster whose bootstrap data lets the Cluster's key in, or its authority's certificates, "" if
// there is none. Secrets tell: a status is lost when objects are moved or restored.
func (r *KubexmConfigReconciler) userOfClusterKey(ctx context.Context, s *scope) (string, error) {
	known, of := &bootstrapv1.KubexmConfigList{}, client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name}
	if err := r.Client.List(ctx, known, client.InNamespace(s.config.Namespace), of); err != nil {
		return "", fmt.Errorf("list the KubexmConfigs of the Cluster %s: %w", s.cluster.Name, err)
	}
	for i := range known.Items {
		c := &known.Items[i]
		if has := &c.Spec.Access.Credentials; has.Secret() != "" || has.IsUserCA() != s.door.access.Credentials.IsUserCA() {
			continue
		}
		if exists, err := r.secretExists(ctx, hostKeyOf(c)); err != nil || exists {
			return c.Name, err
		}
	}
	return "", nil
}

// makeHostKey makes the key that the bootstrap data brings to the host, or writes down again the one that was pinned since.
func (r *KubexmConfigReconciler) makeHostKey(ctx context.Context, s *scope) error {
	keys, key := &s.door.keys, hostKeyOf(s.config)
	data := map[string][]byte{}
	s.door.closed.keepIn(data)
	if keys.pinned != "" {
		data[hostPublicKey] = []byte(keys.pinned)
	} else {
		if published, err := r.secretExists(ctx, s.key); err != nil {
			return err
		} else if published {
			return fmt.Errorf("the Secret %s with the key by which the host is known does not exist, and the bootstrap data, which brings that "+
				"key to the host, was published: restore the Secret from a backup, or delete the Machine to have another host", key.Name)
		}
		private, public, err := door.NewBirthKey()
		if err != nil {
			return fmt.Errorf("make a host key: %w", err)
		}
		keys.birth, keys.birthPublic = private, public
		data[birthKey], data[birthPublicKey] = private.Reveal(), []byte(public)
	}
	err := r.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.config, bootstrapv1.GroupVersion.WithKind("KubexmConfig"))},
		},
		Type: clusterv1.ClusterSecretType, Data: data,
	})
	if err != nil {
		return fmt.Errorf("create the Secret %s: %w", key.Name, err) // also if it exists by now: it is read again
	}
	keys.secretExists = true
	s.door.access.HostKeys.Pinned = []string{keys.expected()}
	return nil
}

// keepHostKey writes what the enrollment came to into the Secret of the host's keys. Only what is written there counts.
func (r *KubexmConfigReconciler) keepHostKey(ctx context.Context, s *scope, e *enrolled) error {
	if e.hostKey == "" && !e.retired {
		return nil
	}
	found, key := &corev1.Secret{}, hostKeyOf(s.config)
	if err := r.Reader.Get(ctx, key, found); err != nil {
		return fmt.Errorf("get the Secret %s: %w", key.Name, err)
	}
	if !metav1.IsControlledBy(found, s.config) {
		return notOurs(key.Name, "the keys by which the host is known")
	}
	before := found.DeepCopy()
	if e.hostKey != "" {
		found.Data[hostPublicKey] = []byte(e.hostKey)
	}
	if e.retired {
		delete(found.Data, birthKey)
	}
	if err := r.Client.Patch(ctx, found, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update the Secret %s: %w", key.Name, err)
	}
	return nil
}

// errNoKey says that the credentials cannot be brought to a host by bootstrap data.
var errNoKey = errors.New("it has no " + infra.KeyPrivateKey)

// bootstrapData is what the host runs when it starts: as cloud-config, in the part of that which every infrastructure provider understands,
// or as Ignition has it. It may be run any number of times.
func (r *KubexmConfigReconciler) bootstrapData(ctx context.Context, s *scope) ([]byte, error) {
	script := sentinel
	if d := s.door; d != nil && !s.isClosing() { // else whoever runs it again opens nothing
		opening, err := r.opening(ctx, s, d)
		of, at := &d.access.Credentials, "secretRef"
		if of.IsUserCA() {
			at = "userCA.secretRef"
		}
		switch {
		case err == nil:
			script = opening
		case errors.Is(err, errNoKey) && d.keys.areDeclared && d.access.Connection != spec.ConnectionCallHome && !of.IsUserCA():
			// The image has the user, the password and the key.
		default:
			return nil, fmt.Errorf("spec.access.credentials.%s: the Secret %s: %w", at, of.Secret(), err)
		}
	}
	if s.config.Spec.Format == bootstrapv1.IgnitionFormat {
		return door.Ignition(script)
	}
	return door.CloudConfig(script)
}

// opening is the script that lets us in.
func (r *KubexmConfigReconciler) opening(ctx context.Context, s *scope, d *doorway) (string, error) {
	credentials, err := r.credentials(ctx, client.ObjectKey{Namespace: s.config.Namespace, Name: d.access.Credentials.Secret()})
	if err != nil {
		return "", err
	}
	if len(credentials[infra.KeyPrivateKey]) == 0 {
		return "", errNoKey
	}
	key, principal, err := authorized(d.access, credentials)
	if err != nil {
		return "", err
	}
	o := door.Options{
		Nonce: nonceOf(s), User: d.access.User, AuthorizedKey: key, Principal: principal, BirthKey: d.keys.birth,
		NoPasswordSudo: d.access.User != "root" && len(credentials[infra.KeySudoPassword]) == 0,
	}
	if d.access.Connection == spec.ConnectionCallHome {
		o.Manager = r.CallHome.Address()
	}
	return o.Script()
}

// authorized is the public key that the user lets in. With a principal, it is an authority's.
func authorized(a spec.Access, credentials map[string][]byte) (key, principal string, err error) {
	if !a.Credentials.IsUserCA() {
		key, err = publicKey(credentials)
		return key, "", err
	}
	authority, err := ssh.NewUserCA(secret.New(credentials[infra.KeyPrivateKey]))
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", infra.KeyPrivateKey, err)
	}
	return authority.PublicKey(), cmp.Or(a.Credentials.UserCA.Principal, a.User), nil
}

// nonceOf is by what a host shows that it was this Machine's bootstrap data that opened it. It stays when clusterctl moves the objects.
func nonceOf(s *scope) string {
	if fields := strings.Fields(s.door.keys.birthPublic); len(fields) > 1 {
		return digest([]byte(fields[1]))
	}
	return digest([]byte(s.key.String()))
}
