/**
 * Declares the attributes of sdp-transform 3 that a test compares, because the package has no types. Text that looks like
 * an integer arrives as a number.
 */
declare module 'sdp-transform' {
  type Scalar = string | number
  interface RawAttributes {
    rtcp?: { port?: Scalar; netType?: Scalar; ipVer?: Scalar; address?: Scalar }
    rtcpMux?: string
    ptime?: Scalar
    maxptime?: Scalar
    direction?: string
    crypto?: { id?: Scalar; suite?: Scalar; config?: Scalar; sessionConfig?: Scalar }[]
    mid?: Scalar
    setup?: string
    fingerprint?: { type?: Scalar; hash?: Scalar }
    iceUfrag?: Scalar
    icePwd?: Scalar
  }
  interface RawCodecs {
    rtp: { payload?: Scalar; codec?: Scalar; rate?: Scalar; encoding?: Scalar }[]
    fmtp: { payload?: Scalar; config?: Scalar }[]
  }
  interface RawMedia extends RawAttributes, RawCodecs {}
  interface RawSession extends RawAttributes, Partial<RawCodecs> {
    media: RawMedia[]
  }
  const sdpTransform: {
    parse(text: string): RawSession
  }
  export default sdpTransform
}
