// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/chart/keyedsemaphore"
	"shipper.dev/shipper/chart/lru"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/outward"
)

// idleFor is how long a repository without requests is kept.
const idleFor = time.Hour

// Options of a Catalog. The zero value of each field stands for the default that it names.
type Options struct {
	// Clock is used for the age of indexes. Default: the real one.
	Clock clock.PassiveClock
	// Repositories says where charts may be fetched from. Default: outward.AnyHTTPS.
	Repositories outward.Policy
	// Transport makes the requests. Default: one that connects only to what Repositories allows.
	Transport http.RoundTripper
	// CacheDir keeps archives across restarts. It must belong to Shipper alone. Default: none, archives are kept in memory.
	CacheDir string
	// Secrets reads the credentials that charts name. Default: none are read, and such charts cannot be fetched.
	Secrets Secrets
	// SystemNamespace is Shipper's own: no Secret in it is read for a chart. Default: shipper-system.
	SystemNamespace string
	// Log gets the errors of background work. Default: none are logged.
	Log logr.Logger
	// FreshFor is how long an index is used without asking for it again. Default: 10 s.
	FreshFor time.Duration
	// Patience is how long a caller waits for the refresh of an index that is known but old. Default: 1 s.
	Patience time.Duration
	// FetchTimeout bounds one download. Default: 30 s.
	FetchTimeout time.Duration
	// MaxIndexBytes bounds one index. Default: 64 MiB.
	MaxIndexBytes int64
	// MaxIndexes bounds the number of repositories remembered. Default: 256.
	MaxIndexes int
	// MaxIndexMemory bounds what all indexes take in memory. Default: 256 MiB.
	MaxIndexMemory int64
	// MaxArchiveBytes bounds one archive. Default: 32 MiB.
	MaxArchiveBytes int64
	// MaxDiskBytes bounds the archives in CacheDir. Default: 1 GiB.
	MaxDiskBytes int64
	// MaxChartMemory bounds what loaded charts take in memory. Default: 128 MiB.
	MaxChartMemory int64
	// MaxRenders bounds the charts that are rendered at one time. Default: 8.
	MaxRenders int
	// MaxRenderMemory bounds the cache of rendered manifests. Default: 32 MiB.
	MaxRenderMemory int64
}

// withDefaults sets the defaults of empty fields.
func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.SystemNamespace = cmp.Or(o.SystemNamespace, shipper.SystemNamespace)
	o.FreshFor = cmp.Or(o.FreshFor, 10*time.Second)
	o.Patience = cmp.Or(o.Patience, time.Second)
	o.FetchTimeout = cmp.Or(o.FetchTimeout, 30*time.Second)
	o.MaxIndexBytes = cmp.Or(o.MaxIndexBytes, 64<<20)
	o.MaxIndexes = cmp.Or(o.MaxIndexes, 256)
	o.MaxIndexMemory = cmp.Or(o.MaxIndexMemory, 256<<20)
	o.MaxArchiveBytes = cmp.Or(o.MaxArchiveBytes, 32<<20)
	o.MaxDiskBytes = cmp.Or(o.MaxDiskBytes, 1<<30)
	o.MaxChartMemory = cmp.Or(o.MaxChartMemory, 128<<20)
	o.MaxRenders = cmp.Or(o.MaxRenders, 8)
	o.MaxRenderMemory = cmp.Or(o.MaxRenderMemory, 32<<20)
	return o
}

// Resolution is the version that a constraint means.
type Resolution struct {
	// Version is the version as the index has it.
	Version string
	// Digest is the sha256 (hex) that the index gives for the archive; empty when it gives none.
	Digest string
	// Stale is true when the last refresh of the repository's index failed.
	Stale bool
	// StaleSince is when the index was last confirmed; zero unless Stale.
	StaleSince time.Time
}

// Catalog caches chart repositories. It is safe for concurrent use, and bounded in memory and disk.
type Catalog struct {
	// ctx ends the background work.
	ctx     context.Context
	options Options
	fetcher *fetcher
	indexes *index.Parser
	renders *render.Cache

	mu           sync.Mutex
	repositories map[string]*repository

	disk   *disk
	charts *lru.Cache[archiveKey, *render.Chart]
	// broken has the archives that could not be fetched.
	broken *lru.Cache[archiveKey, backoff]
	// loads are those in progress, and downloads bounds the downloads per namespace.
	loads     singleflight.Group
	downloads *keyedsemaphore.Semaphore
}

// NewCatalog returns a Catalog whose background work ends with ctx. It fetches only on request.
func NewCatalog(ctx context.Context, o Options) *Catalog {
	o = o.withDefaults()
	return &Catalog{
		ctx: ctx, options: o, fetcher: newFetcher(o.Repositories, o.Transport), renders: render.NewCache(o.MaxRenders, o.MaxRenderMemory),
		indexes: index.NewParser(), repositories: map[string]*repository{},
		disk:      openDisk(o.CacheDir, o.MaxDiskBytes, o.Clock, o.Log),
		charts:    lru.New[archiveKey, *render.Chart](o.MaxChartMemory),
		broken:    lru.New[archiveKey, backoff](1024),
		downloads: keyedsemaphore.New(math.MaxInt, downloadsEach),
	}
}

// Resolve returns the newest version in the repository's index that satisfies want.Version, for an Application in a namespace
// that has the credentials that want names. It uses a cached index if there is one; before it fails with ErrNoMatch, it
// refreshes the index.
func (c *Catalog) Resolve(ctx context.Context, namespace string, want shipper.Chart) (Resolution, error) {
	wanted, err := index.ParseConstraint(want.Version)
	if err != nil {
		return Resolution{}, err
	}
	r, err := c.repository(ctx, namespace, want)
	if err != nil {
		return Resolution{}, err
	}
	known, found, ok, err := c.lookUp(ctx, r, func(ix *index.Index) (index.Entry, bool) { return ix.Resolve(want.Name, wanted) })
	switch {
	case err != nil:
		return Resolution{}, err
	case !ok:
		return Resolution{}, known.noMatch(r.name, want.Name, wanted)
	}
	return c.withDigest(ctx, r, known.resolution(found))
}

// withDigest adds the digest of a version's archive, which a registry's list of tags lacks. If the registry does not answer,
// the version is used without a digest, as with an index that has none.
func (c *Catalog) withDigest(ctx context.Context, r *repository, found Resolution) (Resolution, error) {
	if r.registry == nil {
		return found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Patience)
	defer cancel()
	digest, err := r.registry.digest(ctx, found.Version, c.options.Clock.Now(), c.options.FreshFor)
	if failure, ok := errors.AsType[*chart.Unusable](err); ok {
		return Resolution{}, chart.BrokenSpec(failure, "%s:%s %s", r.name, tagOf(found.Version), failure)
	}
	found.Digest = digest
	return found, nil
}

// Refresh refreshes the index of a chart's repository, unless that was just done, and waits for it as long as ctx and Patience
// allow. It fails only when no index is cached afterwards.
func (c *Catalog) Refresh(ctx context.Context, namespace string, of shipper.Chart) error {
	r, err := c.repository(ctx, namespace, of)
	if err != nil {
		return err
	}
	_, err = c.index(ctx, r, r.visit(true))
	return err
}

// Allows returns an error if charts may not be fetched from a repository. It does not resolve host names; that happens when
// fetching.
func (c *Catalog) Allows(repoURL string) error {
	_, err := c.allowed(repoURL)
	return err
}

// allowed parses and checks a repository's URL.
func (c *Catalog) allowed(repoURL string) (*url.URL, error) {
	u, err := parseRepository(repoURL)
	if err != nil {
		return nil, err
	}
	check, policy := outward.Policy.Check, c.options.Repositories.Worded(wording)
	if u.Scheme == ociScheme {
		check = checkOCI
	}
	if err := check(policy, u); err != nil {
		return nil, chart.BrokenSpec(errors.Join(chart.ErrNotAllowed, err), "repository %s: %s", outward.Redact(u), err)
	}
	return u, nil
}

func (s snapshot) resolution(found index.Entry) Resolution {
	resolved := Resolution{Version: found.Version, Digest: found.Digest, Stale: s.failure != nil}
	if resolved.Stale {
		resolved.StaleSince = s.checked
	}
	return resolved
}

// repository returns the cached state of a chart's repository, empty at first. In a registry each chart has its own; content
// fetched with the credentials of one Secret is not shared with others.
func (c *Catalog) repository(ctx context.Context, namespace string, of shipper.Chart) (*repository, error) {
	u, err := c.allowed(of.RepoURL)
	if err != nil {
		return nil, err
	}
	access, err := c.access(ctx, namespace, of, u)
	if err != nil {
		return nil, err
	}
	var inRegistry *registry
	if u.Scheme == ociScheme {
		if inRegistry, err = c.fetcher.newRegistry(u, of.Name, access); err != nil {
			return nil, err
		}
		u.Path += "/" + of.Name
	}
	key := u.String()
	if access != nil {
		key += " " + access.scope
	}
	now := c.options.Clock.Now()
	c.mu.Lock()
	r, ok := c.repositories[key]
	if !ok {
		r = newRepository(u, key, access)
		r.registry, r.client = inRegistry, c.fetcher.opened(u, access)
		c.repositories[key] = r
	}
	r.used = now
	c.mu.Unlock()
	if !ok {
		c.trim(now)
	}
	return r, nil
}

// trim forgets idle repositories, and the least recently used ones when there are too many.
func (c *Catalog) trim(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var size int64
		var oldest *repository
		for _, r := range c.repositories {
			size += r.size()
			if oldest == nil || r.used.Before(oldest.used) {
				oldest = r
			}
		}
		crowded := len(c.repositories) > c.options.MaxIndexes || size > c.options.MaxIndexMemory
		if oldest == nil || len(c.repositories) == 1 || (!crowded && now.Sub(oldest.used) < idleFor) {
			return
		}
		delete(c.repositories, oldest.key)
	}
}
