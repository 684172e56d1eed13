/**
 * Declares the parts of sdp-transform 3 that sdp.ts uses, because the package has no types. Text that looks like an
 * integer arrives as a number.
 */
declare module 'sdp-transform' {
  type Scalar = string | number
  interface RawConnection {
    version?: Scalar
    ip?: Scalar
  }
  interface RawMedia {
    type: string
    port: Scalar
    protocol: string
    payloads?: Scalar
    connection?: RawConnection
    rtp: { payload?: Scalar; codec?: Scalar; rate?: Scalar; encoding?: Scalar }[]
    fmtp: { payload?: Scalar; config?: Scalar }[]
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
  interface RawSession {
    version?: Scalar
    origin?: { username?: Scalar; sessionId?: Scalar; sessionVersion?: Scalar; ipVer?: Scalar; address?: Scalar }
    connection?: RawConnection
    direction?: string
    ptime?: Scalar
    setup?: string
    fingerprint?: { type?: Scalar; hash?: Scalar }
    iceUfrag?: Scalar
    icePwd?: Scalar
    media: RawMedia[]
  }
  const sdpTransform: {
    parse(text: string): RawSession
  }
  export default sdpTransform
}
