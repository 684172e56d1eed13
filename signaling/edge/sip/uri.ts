// Signaling reads URIs too, and may not import the edge: the reader lies on common ground.
export * from '../../../core/runtime/sip/uri.ts'
