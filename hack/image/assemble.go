// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// assemble writes the archive and returns the digest of its index.
func assemble(ctx context.Context, o order) (v1.Hash, error) {
	dockerfile, err := os.Open(filepath.Join(o.root, "Dockerfile"))
	if err != nil {
		return v1.Hash{}, err
	}
	defer dockerfile.Close()
	r, err := read(dockerfile, o.args)
	if err != nil {
		return v1.Hash{}, err
	}
	scratch, err := os.MkdirTemp("", "shipper-image-")
	if err != nil {
		return v1.Hash{}, fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // any rest is in the folder for temporary files
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, name := range o.platforms {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("platform %q: %w", name, err)
		}
		built := filepath.Join(scratch, platform.OS+"-"+platform.Architecture)
		if err := o.build(ctx, r, platform, built); err != nil {
			return v1.Hash{}, err
		}
		image, err := o.image(r, platform, built)
		if err != nil {
			return v1.Hash{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	if err := o.write(index, filepath.Join(scratch, "layout")); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// programs does what the build stage does, for a platform, into a folder.
func (o order) programs(ctx context.Context, r *recipe, platform *v1.Platform, into string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(o.root, r.script), append([]string{into}, r.names...)...)
	cmd.Env = append(os.Environ(), "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s for %s: %w", strings.Join(r.names, " and "), platform, err)
	}
	return nil
}

// image is the image for a platform, whose programs are in the folder built.
func (o order) image(r *recipe, platform *v1.Platform, built string) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
		Created: v1.Time{Time: o.at},
		Config:  v1.Config{User: r.user, Labels: r.labels, WorkingDir: "/"},
		RootFS:  v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, fmt.Errorf("making the image's configuration: %w", err)
	}
	for _, step := range r.copies {
		files := make([]file, len(step.files))
		for i, f := range step.files {
			files[i] = file{from: o.locate(f.from, r.built, built), to: f.to}
		}
		layer, err := layerOf(files, o.at)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: o.at}, CreatedBy: step.source}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history}); err != nil {
			return nil, fmt.Errorf("appending a layer: %w", err)
		}
	}
	return image, nil
}

// locate is where a file of the build stage is on this machine: in the folder of what was built, or else where it is there.
func (o order) locate(path, stage, built string) string {
	if name, ok := strings.CutPrefix(path, stage+"/"); ok {
		return filepath.Join(built, name)
	}
	if o.authorities != "" {
		return o.authorities
	}
	return path
}

// write writes the archive: an index that names one image, in the layout of OCI, as a tar.
func (o order) write(index v1.ImageIndex, scratch string) error {
	path, err := layout.Write(scratch, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	tag := o.name[strings.LastIndex(o.name, ":")+1:]
	if tag == o.name || strings.Contains(tag, "/") {
		return fmt.Errorf("name %q has no tag", o.name)
	}
	// containerd, and with it kind and docker, take the whole name from the first; podman and skopeo the tag from the second.
	names := map[string]string{"io.containerd.image.name": o.name, "org.opencontainers.image.ref.name": tag}
	if err := path.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	// Under another name first: an archive with its final name is complete.
	out, err := os.CreateTemp(filepath.Dir(o.out), ".image-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) //nolint:errcheck // it is gone, when all is well
	defer out.Close()
	if err := pack(out, scratch, o.at); err != nil {
		return err
	}
	if err := out.Chmod(0o644); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", o.out, err)
	}
	return os.Rename(out.Name(), o.out)
}
