// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bytes"
	_ "embed"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

//go:embed door.sh
var shared string

//go:embed open.sh
var openScript string

//go:embed opened.sh
var openedScript string

//go:embed home.sh
var homeScript string

// Options are whom the door lets in, and what the host is known by.
type Options struct {
	// Nonce is whose Machine it is, in letters, digits, colons and dashes. A host that has it was opened by this Machine's bootstrap data.
	Nonce string
	// User is who logs in. If the host has no such user, one is made, with a home and bash.
	User string
	// AuthorizedKey is our public key, as in authorized_keys and without options.
	AuthorizedKey string
	// Principal makes the key an authority's: who has its certificate for this name gets in, and the key itself does not.
	Principal string
	// NoPasswordSudo lets the user become root by sudo without a password. It means nothing for root.
	NoPasswordSudo bool
	// BirthKey is the private host key that NewBirthKey makes. None is brought if it is zero.
	BirthKey secret.Value
	// Manager is where the host connects to, as HOST:PORT, so that it need not be dialled: see bootstrap/callhome. It connects to nobody if
	// that is empty.
	Manager string
}

const (
	root = "root"
	// birthType is the type of birth keys.
	birthType = "ecdsa-sha2-nistp384"
)

var (
	nonceForm = regexp.MustCompile(`^[A-Za-z0-9:-]{1,128}$`)
	// userForm is narrower than spec.ValidateUser: getent takes numbers for users' ids, and sudo takes names in capitals for aliases.
	userForm = regexp.MustCompile(`^[a-z_][A-Za-z0-9_.@-]*$`)
)

// Script is what root is to run on the host, in sh: at any time, and any number of times. It has no argument, and ends with Cluster API's
// sentinel file. It is the same for equal options, and is as secret as BirthKey. The error says which option is wrong.
func (o Options) Script() (string, error) {
	if !nonceForm.MatchString(o.Nonce) {
		return "", fmt.Errorf("the nonce %q is not one of letters, digits, colons and dashes", o.Nonce)
	}
	if errs := spec.ValidateUser(o.User, field.NewPath("user")); len(errs) > 0 {
		return "", errs.ToAggregate()
	}
	if !userForm.MatchString(o.User) {
		return "", fmt.Errorf("the user %q cannot be made on every host: use a name that begins with a small letter, such as kubexm", o.User)
	}
	line, _, err := ssh.PublicKey(o.AuthorizedKey)
	if err != nil {
		return "", fmt.Errorf("the authorized key: %w", err)
	}
	if o.Principal != "" {
		if errs := spec.ValidateAuthorizedPrincipal(o.Principal, field.NewPath("principal")); len(errs) > 0 {
			return "", errs.ToAggregate()
		}
		named := "" // the user's is the one that sshd wants anyway
		if o.Principal != o.User {
			named = fmt.Sprintf(`,principals="%s"`, o.Principal)
		}
		line = "cert-authority" + named + " " + line
	}
	birth, err := birthText(o.BirthKey)
	if err != nil {
		return "", err
	}
	sudo := ""
	if o.NoPasswordSudo && o.User != root {
		sudo = "yes"
	}
	variables := []variable{{"of", o.Nonce}, {"user", o.User}, {"line", line}, {"sudo", sudo}, {"birth", birth}}
	if o.Manager == "" {
		return script(openScript+openedScript, variables...), nil
	}
	to, err := deviceOf(o.Manager)
	if err != nil {
		return "", fmt.Errorf("the manager's address: %w", err)
	}
	return script(homeScript+openScript+"home\n"+openedScript+"call\n", append(variables, variable{"to", to})...), nil
}

// CheckManager says what is wrong with an address for Options.Manager, nil if nothing is.
func CheckManager(address string) error {
	_, err := deviceOf(address)
	return err
}

// deviceOf is an address as bash has it below /dev/tcp: HOST/PORT.
func deviceOf(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	switch n, number := strconv.Atoi(port); {
	case err != nil:
		return "", err
	case net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0:
		return "", fmt.Errorf("%q is not a DNS name or an IP address, and a port", address)
	case number != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port:
		return "", fmt.Errorf("%q has no port of 1 to 65535", address)
	}
	return host + "/" + port, nil
}

// birthText is the birth key as the host gets it. Its errors do not quote it.
func birthText(key secret.Value) (string, error) {
	if key.IsZero() {
		return "", nil
	}
	text := bytes.TrimSpace(key.Reveal())
	// What PEM ignores around a key would become part of the script.
	block, _ := pem.Decode(text)
	if block == nil || len(block.Headers) > 0 || !bytes.Equal(text, bytes.TrimSpace(pem.EncodeToMemory(block))) {
		return "", errors.New("the birth key is not one private key in PEM")
	}
	line, err := ssh.AuthorizedKey(key, secret.Value{})
	if err != nil {
		return "", errors.New("the birth key is not a private key without a passphrase")
	}
	if _, kind, err := ssh.PublicKey(line); err != nil || kind != birthType {
		return "", fmt.Errorf("the birth key is of type %s, not of %s, so that it would hide a key that the host has", kind, birthType)
	}
	return string(text), nil
}

// variable is one of a script's. Values have no single quote: they are checked where they come in.
type variable struct{ name, value string }

// script is what the host gets: its variables, what scripts share, and one of them.
func script(body string, variables ...variable) string {
	var b strings.Builder
	b.WriteString("set -eu\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "%s='%s'\n", v.name, v.value)
	}
	b.WriteString(compact(shared + body))
	return b.String()
}

// compact drops what the shell would skip anyway: comment lines and indentation. Scripts have no strings of several lines.
func compact(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if text := strings.TrimLeft(line, "\t"); text != "\n" && !strings.HasPrefix(text, "#") {
			b.WriteString(text)
		}
	}
	return b.String()
}

// NewBirthKey makes a host key of a type that hosts have none of. It returns its private half in PEM, and its public one as in
// authorized_keys.
func NewBirthKey() (private secret.Value, public string, err error) {
	if private, err = ssh.NewHostKey(); err != nil {
		return secret.Value{}, "", err
	}
	if public, err = ssh.AuthorizedKey(private, secret.Value{}); err != nil {
		return secret.Value{}, "", err
	}
	return private, public, nil
}

// CloudConfig is cloud-config that runs a script as one string below runcmd: the executors of some infrastructures know nothing else.
func CloudConfig(script string) ([]byte, error) {
	body, err := yaml.Marshal(map[string][]string{"runcmd": {script}})
	if err != nil {
		return nil, err
	}
	return append([]byte("#cloud-config\n"), body...), nil
}
