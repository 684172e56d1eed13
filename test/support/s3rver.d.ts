declare module 's3rver' {
  import type { RequestListener } from 'node:http'

  /** The part of the S3 server that tests use. It stores objects below a folder. */
  export default class S3rver {
    constructor(options: {
      readonly silent: boolean
      readonly directory: string
      readonly vhostBuckets: boolean
      readonly configureBuckets: readonly { readonly name: string }[]
    })
    configureBuckets(): Promise<void>
    callback(): RequestListener
  }
}
