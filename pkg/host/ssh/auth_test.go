// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh/sshtest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// TestPasswordIsGivenOnce: a host that asks again, asks more than one question, or asks by another method, gets nothing more.
func TestPasswordIsGivenOnce(t *testing.T) {
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		password bool // by password authentication, too, which is refused
		ask      func(ssh.KeyboardInteractiveChallenge) (answers []string, err error)
		given    int
		enters   bool
	}{
		"one question": {false, func(c ssh.KeyboardInteractiveChallenge) ([]string, error) {
			return c("", "", []string{"Password: "}, []bool{false})
		}, 1, true},
		"a round without questions": {false, func(c ssh.KeyboardInteractiveChallenge) ([]string, error) {
			answers, err := c("", "", []string{"Password: "}, []bool{false})
			if err == nil {
				_, err = c("", "welcome", nil, nil)
			}
			return answers, err
		}, 1, true},
		"two questions": {false, func(c ssh.KeyboardInteractiveChallenge) ([]string, error) {
			return c("", "", []string{"Password: ", "sudo password: "}, []bool{false, false})
		}, 0, false},
		"a shown question": {false, func(c ssh.KeyboardInteractiveChallenge) ([]string, error) {
			return c("", "", []string{"Token: "}, []bool{true})
		}, 0, false},
		"two rounds": {false, func(c ssh.KeyboardInteractiveChallenge) ([]string, error) {
			first, err := c("", "", []string{"Password: "}, []bool{false})
			if err != nil {
				return nil, err
			}
			again, err := c("", "", []string{"Password of the other host: "}, []bool{false})
			return append(first, again...), err
		}, 1, false},
		"by two methods": {true, func(c ssh.KeyboardInteractiveChallenge) ([]string, error) {
			return c("", "", []string{"Password: "}, []bool{false})
		}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			given := 0
			count := func(answers ...string) {
				for _, a := range answers {
					if a == "s3cret" {
						given++
					}
				}
			}
			server := sshtest.New(t, func(e *sshtest.Exec) { e.Hang() }, func(c *ssh.ServerConfig) {
				c.NoClientAuth, c.PublicKeyCallback = false, nil
				c.KeyboardInteractiveCallback = func(
					_ ssh.ConnMetadata, challenge ssh.KeyboardInteractiveChallenge,
				) (*ssh.Permissions, error) {
					answers, err := test.ask(func(name, instruction string, questions []string, echos []bool) ([]string, error) {
						answers, err := challenge(name, instruction, questions, echos)
						count(answers...)
						return answers, err
					})
					if err != nil || len(answers) != 1 || answers[0] != "s3cret" {
						return nil, refused
					}
					return nil, nil
				}
				if test.password {
					c.PasswordCallback = func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
						count(string(password))
						return nil, refused
					}
				}
			})
			h, err := Dial(t.Context(), Config{
				Name: "node-1", Address: server.Address, Port: server.Port, User: "ops", Auth: Auth{Password: secret.New("s3cret")},
				HostKey: HostKey{Pinned: []string{server.HostKey}},
			})
			if test.enters {
				if err != nil {
					t.Fatal(err)
				}
				_ = h.Close()
			} else if err == nil || strings.Contains(err.Error(), "s3cret") ||
				host.KindOf(err) != host.KindAuth && host.KindOf(err) != host.KindUnreachable {
				t.Errorf("kind %s: %v", host.KindOf(err), err)
			}
			if given != test.given {
				t.Errorf("the password was given %d times, want %d", given, test.given)
			}
		})
	}
}
