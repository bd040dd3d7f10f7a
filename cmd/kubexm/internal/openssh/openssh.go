// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openssh finds what OpenSSH logs in with on this machine: the keys of its agent, and those that its config names. Its own
// program is asked what its config means (ssh -G), so that Match, Include and patterns mean here what they mean there. User, port, host
// keys and jump hosts are not taken from it: those a config file of ours declares.
package openssh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Login is a user on a machine, which has the address that one would give ssh.
type Login struct {
	Address string
	Port    int32
	User    string
}

// Client is OpenSSH's client on this machine. The zero Client is the user's own. It is safe for concurrent use.
type Client struct {
	// Config is a config file to be read instead of ~/.ssh/config and /etc/ssh/ssh_config, as by ssh -F.
	Config string

	mu    sync.Mutex
	asked map[Login]func() (settings, error)
}

// agentVariable names the agent's socket.
const agentVariable = "SSH_AUTH_SOCK"

// timeout is how long OpenSSH may take to say what its config means. It may run commands of the config's to find out.
const timeout = 20 * time.Second

// Check says why there is nothing to log in with, nil if there is. Where an agent runs there is: whether it has the right key shows when
// it is asked.
func (c *Client) Check(address string, port int32, user string) error {
	if os.Getenv(agentVariable) != "" {
		return nil
	}
	_, err := c.Auth(context.Background(), Login{Address: address, Port: port, User: user})
	return err
}

// Auth is what OpenSSH would log in with: private keys that its config names for the login, or that it tries if none is named, and the
// agent. A private key with a passphrase is for the agent, and so are certificates and hardware keys. The error says what there is not.
func (c *Client) Auth(ctx context.Context, l Login) (ssh.Auth, error) {
	s, err := c.settings(ctx, l)
	if err != nil {
		return ssh.Auth{}, err
	}
	var auth ssh.Auth
	var named, encrypted []string
	for _, file := range s.identities {
		content, err := os.ReadFile(file)
		if err != nil {
			content, err = os.ReadFile(file + ".pub") // the private key is the agent's alone
		}
		if err != nil {
			continue // OpenSSH goes on without it, too
		}
		key := secret.New(content)
		id, err := ssh.ReadIdentity(key)
		if err != nil {
			continue
		}
		if id.Public == "" {
			if public, err := os.ReadFile(file + ".pub"); err == nil {
				id.Public = strings.TrimSpace(string(public))
			}
		}
		switch {
		case id.Encrypted:
			encrypted = append(encrypted, file)
		case id.Private:
			auth.PrivateKeys = append(auth.PrivateKeys, key)
		}
		if id.Public != "" {
			named = append(named, id.Public)
		}
	}
	noAgent := "no SSH agent runs (" + agentVariable + " is not set)"
	if s.agent != "" {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", s.agent)
		if err != nil {
			noAgent = fmt.Sprintf("the SSH agent does not answer (%v)", err)
		} else {
			_ = conn.Close()
			auth.AgentSocket = s.agent
		}
	}
	if s.only {
		if auth.AgentKeys = named; len(named) == 0 {
			auth.AgentSocket, noAgent = "", "OpenSSH's config has IdentitiesOnly and names no key that is there"
		}
	}
	if auth.AgentSocket != "" || len(auth.PrivateKeys) > 0 {
		return auth, nil
	}
	if len(encrypted) > 0 {
		return auth, fmt.Errorf("%s, and %s is encrypted: start an agent, and add it there (ssh-add %[2]s)", noAgent, encrypted[0])
	}
	return auth, fmt.Errorf("%s, and OpenSSH has no key for %s@%s: give it one of them", noAgent, l.User, l.Address)
}

// settings are the ones of OpenSSH's that we use.
type settings struct {
	identities []string // files, in the order of OpenSSH
	agent      string   // the path of its socket, "" if there is none
	only       bool     // no keys of the agent but those of the identities
}

func (c *Client) settings(ctx context.Context, l Login) (settings, error) {
	c.mu.Lock()
	ask := c.asked[l]
	if ask == nil {
		ask = sync.OnceValues(func() (settings, error) { return c.ask(context.WithoutCancel(ctx), l) })
		if c.asked == nil {
			c.asked = map[Login]func() (settings, error){}
		}
		c.asked[l] = ask
	}
	c.mu.Unlock()
	return ask()
}

// ask asks OpenSSH's program. Where there is none, there is no config of its either.
func (c *Client) ask(ctx context.Context, l Login) (settings, error) {
	s := settings{agent: os.Getenv(agentVariable)}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	args := []string{"-G", "-p", strconv.Itoa(int(l.Port)), "-l", l.User}
	if c.Config != "" {
		args = append(args, "-F", c.Config)
	}
	cmd := exec.CommandContext(ctx, "ssh", append(args, "--", l.Address)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	switch err := cmd.Run(); {
	case errors.Is(err, exec.ErrNotFound):
		return s, nil
	case err != nil:
		return s, fmt.Errorf("OpenSSH does not say what its config means for %s (ssh -G): %w: %s", l.Address, err, strings.TrimSpace(said.String()))
	}
	return s, s.read(out.String(), l)
}

// read takes in what ssh -G prints.
func (s *settings) read(printed string, l Login) error {
	e, err := newExpander(l, printed)
	if err != nil {
		return err
	}
	for line := range strings.Lines(printed) {
		keyword, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch keyword {
		case "identityfile":
			if value == "none" {
				continue
			}
			file, err := e.expand(value)
			if err != nil {
				return fmt.Errorf("OpenSSH's config: IdentityFile %s: %w: give the host a privateKeyPath", value, err)
			}
			s.identities = append(s.identities, file)
		case "identitiesonly":
			s.only = value == "yes"
		case "identityagent":
			switch {
			case value == "none":
				s.agent = ""
			case value == agentVariable:
			case strings.HasPrefix(value, "$") && !strings.HasPrefix(value, "${"):
				s.agent = os.Getenv(value[1:])
			default:
				if s.agent, err = e.expand(value); err != nil {
					return fmt.Errorf("OpenSSH's config: IdentityAgent %s: %w", value, err)
				}
			}
		}
	}
	return nil
}

// expander puts values where the names of files have tokens: see TOKENS and ENVIRONMENT VARIABLES in ssh_config(5).
type expander struct {
	home   string
	tokens map[byte]string
}

func newExpander(l Login, printed string) (*expander, error) {
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("this user: %w", err)
	}
	hostname := l.Address
	for line := range strings.Lines(printed) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), "hostname "); is {
			hostname = value
		}
	}
	local, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("the name of this machine: %w", err)
	}
	short, _, _ := strings.Cut(local, ".")
	return &expander{home: me.HomeDir, tokens: map[byte]string{
		'%': "%", 'd': me.HomeDir, 'h': hostname, 'i': me.Uid, 'L': short, 'l': local, 'n': l.Address, 'p': strconv.Itoa(int(l.Port)),
		'r': l.User, 'u': me.Username,
	}}, nil
}

// expand is the name of a file with what its tokens mean.
func (e *expander) expand(name string) (string, error) {
	if rest, isHome := strings.CutPrefix(name, "~/"); isHome {
		name = filepath.Join(strings.ReplaceAll(e.home, "%", "%%"), rest)
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch {
		case strings.HasPrefix(name[i:], "${"):
			variable, _, closed := strings.Cut(name[i+2:], "}")
			value, set := os.LookupEnv(variable)
			if !closed || !set {
				return "", fmt.Errorf("the environment has no variable %s", variable)
			}
			b.WriteString(value)
			i += len("${}") + len(variable) - 1
		case name[i] != '%':
			b.WriteByte(name[i])
		case i+1 == len(name):
			return "", errors.New("it ends with %")
		default:
			i++
			value, known := e.tokens[name[i]]
			if !known {
				return "", fmt.Errorf("the token %%%c is not supported", name[i])
			}
			b.WriteString(value)
		}
	}
	return b.String(), nil
}

// Complete has a host, and its jump host, logged in to by what OpenSSH has, where c says of nothing to log in with. The error is a
// *host.Error.
func (c *Client) Complete(ctx context.Context, to *ssh.Config) error {
	if to.Jump != nil {
		jump := *to.Jump // of hosts that share it
		jump.Name = to.Name
		if err := c.Complete(ctx, &jump); err != nil {
			return ssh.JumpError(err, jump.Address)
		}
		jump.Name = to.Jump.Name
		to.Jump = &jump
	}
	if !to.Auth.IsZero() {
		return nil
	}
	var err error
	if to.Auth, err = c.Auth(ctx, Login{Address: to.Address, Port: cmp.Or(to.Port, 22), User: cmp.Or(to.User, "root")}); err != nil {
		return &host.Error{
			Kind: host.KindAuth, Host: cmp.Or(to.Name, to.Address), Message: "there is nothing to log in with as " + cmp.Or(to.User, "root"), Err: err,
			Remedy: "start an SSH agent with the key, name the key in OpenSSH's config (IdentityFile), or give privateKeyPath or password in the config file",
		}
	}
	return nil
}
