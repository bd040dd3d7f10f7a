// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

const (
	imageRepository = "kubexm-testhost"
	imageSuite      = "bookworm"
	imageEntrypoint = "/usr/local/sbin/testhost-init"
)

//go:embed image image-rpm image-cloud-init image-ignition image-haproxy
var recipeFiles embed.FS

// System is what a test host's operating system is.
type System string

const (
	// Debian is what test hosts are: Debian 12.
	Debian System = ""
	// SimulatedRPM is a host of the Red Hat family as far as programs of Debian go: they say that they are Rocky Linux 9, and rpm, dnf,
	// firewalld and NetworkManager look after them. There is no dpkg and no apt.
	SimulatedRPM System = "rpm"
	// CloudInit is Debian as cloud images have it: with cloud-init, which runs what a config drive says when there is one.
	CloudInit System = "cloud-init"
	// Ignition is Debian with the program ignition, which runs when a test has it run.
	Ignition System = "ignition"
	// HAProxy is Debian with haproxy and a configuration for it, as an image that others begin load balancers of.
	HAProxy System = "haproxy"
)

// recipes are the directories that a system's image is made by, one after the other.
func (s System) recipes() []string {
	if s == Debian {
		return []string{"image"}
	}
	return []string{"image", "image-" + string(s)}
}

// repository is where Docker has the images of the system.
func (s System) repository() string {
	if s == Debian {
		return imageRepository
	}
	return imageRepository + "-" + string(s)
}

// imageOptions are the options of mmdebstrap that shape the image. Manuals would
// double the number of files, which costs at every Snapshot.
func imageOptions() []string {
	return []string{
		"--variant=minbase",
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-exclude=/usr/share/info/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-exclude=/usr/share/man/*",
	}
}

// Image returns the name of the Docker image of hosts with this system,
// "kubexm-testhost:<digest of the recipe>".
func (s System) Image() (string, error) {
	digest := sha256.New()
	fmt.Fprintf(digest, "%s %s %s %q\n", imageSuite, runtime.GOARCH, imageEntrypoint, imageOptions())
	for _, dir := range s.recipes() {
		err := fs.WalkDir(recipeFiles, dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := recipeFiles.ReadFile(path)
			fmt.Fprintf(digest, "%s %d\n%s", path, len(content), content)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("read the image recipe: %w", err)
		}
	}
	return s.repository() + ":" + hex.EncodeToString(digest.Sum(nil))[:12], nil
}

// Image returns the name of the Docker image of hosts that are Debian's.
func Image() (string, error) { return Debian.Image() }

// EnsureImage makes the image of the current recipe known to Docker and returns
// its name. It takes, in this order, what Docker has, the archive in the cache
// directory, and a new build by mmdebstrap, which it then keeps as that archive.
// Processes that need it at once build it once.
func EnsureImage(ctx context.Context, system System, log func(format string, args ...any)) (string, error) {
	image, err := system.Image()
	if err != nil {
		return "", err
	}
	if found, err := imageExists(ctx, image); err != nil || found {
		return image, err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(cache, system.repository()+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if found, err := imageExists(ctx, image); err != nil || found {
		return image, err
	}
	archive := filepath.Join(cache, strings.ReplaceAll(image, ":", "-")+".tar.zst")
	if _, err := os.Stat(archive); errors.Is(err, fs.ErrNotExist) {
		log("building %s with mmdebstrap", image)
		if err := system.buildArchive(ctx, archive); err != nil {
			return "", fmt.Errorf("build %s: %w", image, err)
		}
	} else if err != nil {
		return "", err
	}
	log("importing %s from %s", image, archive)
	if err := importArchive(ctx, archive, image); err != nil {
		return "", fmt.Errorf("import %s from %s (remove the file to build it anew): %w", image, archive, err)
	}
	return image, nil
}

func imageExists(ctx context.Context, image string) (bool, error) {
	id, err := docker(ctx, nil, "image", "ls", "--quiet", image)
	return id != "", err
}

// buildArchive writes the root file system as a zstd-compressed tar to path, which
// is there afterwards whole or not at all.
func (s System) buildArchive(ctx context.Context, path string) error {
	recipe, err := os.MkdirTemp("", imageRepository)
	if err != nil {
		return err
	}
	defer os.RemoveAll(recipe)
	args := append(imageOptions(), "--quiet")
	for _, dir := range s.recipes() {
		packages, err := unpackRecipe(dir, recipe)
		if err != nil {
			return err
		}
		args = append(args, "--include="+strings.Join(packages, ","), "--customize-hook="+filepath.Join(recipe, dir, "customize.sh"))
	}
	partial, err := os.CreateTemp(filepath.Dir(path), ".partial-")
	if err != nil {
		return err
	}
	defer os.Remove(partial.Name())
	defer partial.Close()
	compressed, err := zstd.NewWriter(partial)
	if err != nil {
		return err
	}

	var stderr bytes.Buffer
	// Without a mirror in the arguments mmdebstrap takes the suite's own, with
	// security updates.
	cmd := exec.CommandContext(ctx, "mmdebstrap", append(args, imageSuite, "-")...)
	cmd.Stdout, cmd.Stderr = compressed, &stderr
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("%w; install it with: apt-get install mmdebstrap", err)
		}
		return fmt.Errorf("mmdebstrap: %w: %s", err, tail(stderr.String(), 15))
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	if err := partial.Sync(); err != nil {
		return err
	}
	return os.Rename(partial.Name(), path)
}

// unpackRecipe writes the files of one of a recipe's directories to one of its name in to, and returns the packages it names.
func unpackRecipe(from, to string) ([]string, error) {
	dir := filepath.Join(to, from)
	// mmdebstrap's hooks may run as another user than ours.
	if err := errors.Join(os.Chmod(to, 0o755), os.Mkdir(dir, 0o755)); err != nil {
		return nil, err
	}
	entries, err := recipeFiles.ReadDir(from)
	if err != nil {
		return nil, err
	}
	var packages []string
	for _, entry := range entries {
		content, err := recipeFiles.ReadFile(from + "/" + entry.Name())
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, entry.Name()), content, 0o755); err != nil {
			return nil, err
		}
		if entry.Name() != "packages.txt" {
			continue
		}
		for _, line := range lines(string(content)) {
			if !strings.HasPrefix(line, "#") {
				packages = append(packages, line)
			}
		}
	}
	return packages, nil
}

func importArchive(ctx context.Context, path, image string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := zstd.NewReader(file)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = docker(ctx, content.IOReadCloser(), "import",
		"--change", fmt.Sprintf("ENTRYPOINT [%q]", imageEntrypoint),
		"--change", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"-", image)
	return err
}

// cacheDir returns the project's cache directory and creates it.
func cacheDir() (string, error) {
	dir := os.Getenv("KUBEXM_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache directory (KUBEXM_CACHE names one): %w", err)
		}
		dir = filepath.Join(user, "kubexm")
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// lock takes an advisory lock on path, waiting for another process that has it.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// tail returns the last n lines of text on one line.
func tail(text string, n int) string {
	all := lines(text)
	return strings.Join(all[max(0, len(all)-n):], " | ")
}
