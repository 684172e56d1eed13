// The parser is in core because signaling parses URIs too and must not import the edge.
export * from '../../../core/domain/sip/uri.ts'
