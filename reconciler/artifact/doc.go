// SPDX-License-Identifier: Apache-2.0

// Package artifact stores what Releases are made from in the management cluster, by its digest: their charts, the content of their
// resources, and their values. So a Release can be rendered again, the same, when a repository or an object was changed or is gone.
//
//	what                   objects                                              owners
//	a chart                ChartSnapshots: a head, and the parts of the archive Releases own the head, the head owns the parts
//	content of resources   ResourceSnapshots, the first of which is the head,   as of a chart; until a Release has the digest, the
//	                       and for Secrets Secrets of Shipper's own type        Application owns the head
//	values                 an immutable Secret for each Release                 the Release
//
// The garbage collector deletes what has no owner any more. Shipper never patches a Secret: in namespaces of users it may only create
// and read them. Only the metadata of snapshots is cached. Everything that is read is compared with its digest. The names, labels and
// fields of the stored objects are an API between versions of Shipper: testdata has them.
package artifact
