import { createHash } from 'node:crypto'
import { AwsV4Signer } from 'aws4fetch'
import { SaxesParser } from 'saxes'
import type { S3Config } from './config.ts'
import { createHttpClient, type HttpAnswer } from './http/index.ts'
import type { Log } from './log.ts'

/** A request of the S3 REST API, path style. */
interface S3Request {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly key: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly max_bytes?: number
}

export interface S3Requests {
  /** @throws StoreError unless the store completed the request */
  send(request: S3Request): Promise<HttpAnswer>
  close(): Promise<void>
}

/** The store refused a request or did not respond. `status` is null without a response. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly status: number | null
  constructor(status: number | null, detail: string) {
    super(detail)
    this.status = status
  }
}

/** The operator chooses the store, so it may have any address, even one of this machine. */
const EVERYWHERE = ['0.0.0.0/0', '::/0']
const TIMES = { connect_timeout_ms: 5_000, read_timeout_ms: 30_000, total_timeout_ms: 120_000 } as const

/** Creates S3 requests on the platform's HTTP client, signed with Signature Version 4. */
export function createS3Requests(config: S3Config, log: Log): S3Requests {
  const http = createHttpClient({ allow_private: EVERYWHERE, user_agent: 'Strowger/0.1', log })
  return {
    async send({ method, key, query = {}, headers = {}, body, max_bytes }) {
      const url = new URL(`${config.endpoint}/${config.bucket}/${key.split('/').map(encodeURIComponent).join('/')}`)
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
      const signed = await signerOf(config, method, url, headers, body).sign()
      const reply = await http.request({
        url: signed.url.href,
        method,
        headers: { ...Object.fromEntries(signed.headers), 'accept-encoding': 'identity' },
        // The signature is not valid for the target of a redirect.
        max_redirects: 0,
        replayable: true,
        ...TIMES,
        ...(body === undefined ? {} : { body }),
        ...(max_bytes === undefined ? {} : { max_bytes }),
      })
      if (!reply.ok) throw new StoreError(null, reply.detail)
      const done = reply.status >= 200 && reply.status <= 299
      // A successful GET returns the object, not an XML document of the protocol.
      const document = method === 'GET' && done ? null : s3Document(reply.body.toString())
      // The store may send 200 while it still joins the parts of an upload, and report an error in the body.
      if (!done || document?.root === 'Error') {
        const code = document?.fields['Code']
        throw new StoreError(reply.status, `${method} was answered ${reply.status}${code ? ` ${code}` : ''}`)
      }
      return reply
    },
    close: () => http.close(),
  }
}

const signerOf = (
  config: S3Config,
  method: string,
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: Buffer | undefined,
): AwsV4Signer =>
  new AwsV4Signer({
    method,
    url: url.href,
    headers: {
      ...headers,
      'x-amz-content-sha256': createHash('sha256')
        .update(body ?? '')
        .digest('hex'),
    },
    service: 's3',
    region: config.region,
    accessKeyId: config.access_key,
    secretAccessKey: config.secret_key,
  })

interface S3Document {
  /** Name of the root element. */
  readonly root: string
  /** The text of each child of the root, by name. */
  readonly fields: Readonly<Record<string, string>>
}

/** Parses a response of the store; null for a text that is not XML, such as the page of a proxy. */
export function s3Document(text: string): S3Document | null {
  const parser = new SaxesParser({ xmlns: false })
  const open: string[] = []
  const fields = new Map<string, string>()
  let root: string | null = null
  let malformed = false
  const addText = (part: string): void => {
    const name = open.length === 2 ? open[1] : undefined
    if (name !== undefined) fields.set(name, `${fields.get(name) ?? ''}${part}`)
  }
  parser.on('error', () => {
    malformed = true
  })
  parser.on('opentag', ({ name }) => {
    root ??= name
    open.push(name)
  })
  parser.on('closetag', () => {
    open.pop()
  })
  parser.on('text', addText)
  parser.on('cdata', addText)
  // While it joins parts, the store keeps the connection alive with white space before the document.
  parser.write(text.trimStart()).close()
  return malformed || root === null ? null : { root, fields: Object.fromEntries(fields) }
}
