// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

const (
	// exchange is how long a controller may take to answer one request. Theirs are slow processors.
	exchange = 30 * time.Second
	// most is how many bytes of an answer are read.
	most = 1 << 20
)

// ResetType is how a machine is reset, in Redfish's words.
type ResetType string

const (
	// On turns a machine on that is off.
	On ResetType = "On"
	// ForceRestart resets a machine without its system having a say.
	ForceRestart ResetType = "ForceRestart"
	// PowerCycle turns a machine off and on.
	PowerCycle ResetType = "PowerCycle"
)

// ErrUnanswered means that a reset was asked for and not answered: the machine may have been reset.
var ErrUnanswered = errors.New("the machine may have been reset, which was not answered")

// Controller is the management controller of a machine.
type Controller struct {
	// Address is the URL of its Redfish service, such as https://10.0.0.9.
	Address string
	// SystemID is which of its ComputerSystems the machine is. It may be "" where there is one.
	SystemID string
	// User and Password log in there.
	User     string
	Password secret.Value
	// Authorities are certificates in PEM, one of which has signed the controller's. Where there are none, the certificate is the one with
	// this Fingerprint: the SHA-256 of its DER, in hexadecimal, with or without colons. Where there is none either, it must be signed by
	// an authority that the system trusts.
	Authorities []byte
	Fingerprint string
}

// Reset resets the machine, or turns it on if it is off, and returns which of the two was done and how. It returns when the controller has
// accepted that, not when the machine has booted. After an error nothing was done, unless it is ErrUnanswered.
func (c *Controller) Reset(ctx context.Context) (ResetType, error) {
	s, err := c.open()
	if err != nil {
		return "", err
	}
	defer s.client.CloseIdleConnections()
	how, err := s.reset(ctx)
	if err != nil {
		return how, fmt.Errorf("the management controller %s: %w", c.Address, err)
	}
	return how, nil
}

// session is a Controller that is being asked.
type session struct {
	*Controller
	base   *url.URL
	client *http.Client
}

func (c *Controller) open() (*session, error) {
	base, err := url.Parse(c.Address)
	if err != nil || base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("the management controller %q: want a URL such as https://10.0.0.9", c.Address)
	}
	trust, err := c.trust()
	if err != nil {
		return nil, fmt.Errorf("the management controller %s: %w", c.Address, err)
	}
	return &session{Controller: c, base: base, client: &http.Client{
		Timeout: exchange,
		// Without a proxy: controllers are in a network of their own.
		Transport: &http.Transport{TLSClientConfig: trust, TLSHandshakeTimeout: exchange},
		// Nobody else is sent the password.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (c *Controller) trust() (*tls.Config, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	switch {
	case len(c.Authorities) > 0:
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(c.Authorities) {
			return nil, errors.New("its authorities have no certificate in PEM")
		}
	case c.Fingerprint != "":
		want, err := hex.DecodeString(strings.ReplaceAll(c.Fingerprint, ":", ""))
		if err != nil || len(want) != sha256.Size {
			return nil, errors.New("its fingerprint is not a SHA-256 in hexadecimal")
		}
		trust.InsecureSkipVerify = true // the very certificate is compared instead, as most controllers have signed theirs
		trust.VerifyConnection = func(s tls.ConnectionState) error {
			if is := sha256.Sum256(s.PeerCertificates[0].Raw); !bytes.Equal(is[:], want) {
				return fmt.Errorf("its certificate has the fingerprint %x, not the declared one", is)
			}
			return nil
		}
	}
	return trust, nil
}

// link refers to a resource.
type link struct {
	ID string `json:"@odata.id"`
}

// system is what counts of a ComputerSystem.
type system struct {
	PowerState string `json:"PowerState"`
	Actions    struct {
		Reset struct {
			Target  string      `json:"target"`
			Allowed []ResetType `json:"ResetType@Redfish.AllowableValues"`
		} `json:"#ComputerSystem.Reset"`
	} `json:"Actions"`
}

func (s *session) reset(ctx context.Context) (ResetType, error) {
	of, err := s.find(ctx)
	if err != nil {
		return "", err
	}
	var machine system
	if err := s.do(ctx, http.MethodGet, of, nil, &machine); err != nil {
		return "", err
	}
	how, err := machine.how()
	if err != nil {
		return "", err
	}
	target := machine.Actions.Reset.Target
	if target == "" {
		return "", fmt.Errorf("the system %s cannot be reset by it", of)
	}
	err = s.do(ctx, http.MethodPost, target, map[string]ResetType{"ResetType": how}, nil)
	if err != nil && !errors.Is(err, ErrUnanswered) {
		return "", err
	}
	return how, err
}

// how is how the machine is reset in the state that it is in.
func (m *system) how() (ResetType, error) {
	wanted := []ResetType{ForceRestart, PowerCycle}
	if m.PowerState == "Off" {
		wanted = []ResetType{On}
	}
	allowed := m.Actions.Reset.Allowed
	if len(allowed) == 0 {
		return wanted[0], nil // it does not say
	}
	for _, how := range wanted {
		if slices.Contains(allowed, how) {
			return how, nil
		}
	}
	return "", fmt.Errorf("of a machine that is %s it takes %q, and none of %q", m.PowerState, allowed, wanted)
}

// find is where the ComputerSystem is.
func (s *session) find(ctx context.Context) (string, error) {
	var root struct {
		Systems link `json:"Systems"`
	}
	if err := s.do(ctx, http.MethodGet, "/redfish/v1/", nil, &root); err != nil {
		return "", err
	}
	var all struct {
		Members []link `json:"Members"`
	}
	if err := s.do(ctx, http.MethodGet, root.Systems.ID, nil, &all); err != nil {
		return "", err
	}
	ids := make([]string, 0, len(all.Members))
	for _, m := range all.Members {
		id := m.ID[strings.LastIndex(strings.TrimSuffix(m.ID, "/"), "/")+1:]
		if id = strings.TrimSuffix(id, "/"); s.SystemID == id || s.SystemID == "" && len(all.Members) == 1 {
			return m.ID, nil
		}
		ids = append(ids, id)
	}
	if s.SystemID == "" {
		return "", fmt.Errorf("it has the systems %q: say which is meant", ids)
	}
	return "", fmt.Errorf("it has the systems %q, and not %q", ids, s.SystemID)
}

// do makes one request, of the controller alone, whatever it refers to.
func (s *session) do(ctx context.Context, method, path string, body, into any) error {
	at, err := s.base.Parse(path)
	if err != nil || at.Host != s.base.Host || at.Scheme != s.base.Scheme || path == "" {
		return fmt.Errorf("it refers to %q, which is not its own", path)
	}
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), content)
	if err != nil {
		return err
	}
	request.SetBasicAuth(s.User, string(s.Password.Reveal()))
	request.Header.Set("Accept", "application/json")
	request.Header.Set("OData-Version", "4.0")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // the URL is in the message already
		}
		var dial *net.OpError
		if method != http.MethodPost || errors.As(err, &dial) && dial.Op == "dial" {
			return err
		}
		return fmt.Errorf("%s %s: %w: %w", method, path, ErrUnanswered, err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, most))
	switch {
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s %s: %s: the user %s may not log in or may not do that", method, path, response.Status, s.User)
	case response.StatusCode/100 != 2:
		return fmt.Errorf("%s %s: %s%s", method, path, response.Status, reasonIn(said))
	case into == nil:
		return nil
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if err := json.Unmarshal(said, into); err != nil {
		return fmt.Errorf("%s %s: its answer is no JSON of Redfish: %w", method, path, err)
	}
	return nil
}

// reasonIn is what a Redfish error says, cut to what a line bears.
func reasonIn(said []byte) string {
	var e struct {
		Error struct {
			Message  string `json:"message"`
			Extended []struct {
				Message string `json:"Message"`
			} `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	if json.Unmarshal(said, &e) != nil {
		return ""
	}
	message := e.Error.Message
	if len(e.Error.Extended) > 0 && e.Error.Extended[0].Message != "" {
		message = e.Error.Extended[0].Message
	}
	if message = strings.ToValidUTF8(strings.Join(strings.Fields(message), " "), "?"); message == "" {
		return ""
	}
	const limit = 300
	if len(message) > limit {
		message = strings.ToValidUTF8(message[:limit], "") + " …"
	}
	return fmt.Sprintf(": %q", message)
}
