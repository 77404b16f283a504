// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"

	"shipper.dev/shipper/outward/promql"
	"shipper.dev/shipper/webhook/bounds"
)

// maxQueries bounds the bytes of all queries that one write has parsed, with their arguments.
const maxQueries = 128 << 10

// parser parses the queries of one write.
type parser struct {
	namespace string
	bytes     int
}

// parse returns an error if a query is not valid, or if the write has too many. expression.ErrBusy is temporary.
func (p *parser) parse(ctx context.Context, query string) error {
	if p.bytes += len(query); p.bytes > maxQueries {
		return fmt.Errorf("the queries of all checks, with their arguments, are longer than %d KiB together: use fewer or shorter ones",
			maxQueries>>10)
	}
	return bounds.Compile(ctx, p.namespace, func() error { return promql.Parse(query) })
}

// exhausted reports whether nothing more is parsed.
func (p *parser) exhausted() bool { return p.bytes > maxQueries }
