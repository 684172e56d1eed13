import { createHash, createHmac } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from 's3rver'
import type { S3Config } from '../../core/runtime/config.ts'
import { freePort } from './ports.ts'

/** A real S3 server with one bucket, behind a proxy that checks signatures. */
export interface S3Server {
  readonly config: S3Config
  /** Returns the keys of all objects. */
  keys(): string[]
  stop(): Promise<void>
  /** Starts the server again on the same port, with the same objects. */
  start(): Promise<void>
}

const SECRET = 'S3RVER'

export async function s3Server(t: { teardown(end: () => unknown): void }): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), 'strowger-s3-'))
  const bucket = 'recordings-bucket'
  const objects = new S3rver({ silent: true, directory, vhostBuckets: false, configureBuckets: [{ name: bucket }] })
  await objects.configureBuckets()
  const serve = objects.callback()
  let door: Server | null = null
  // A reserved port, which no other test gets while the server is stopped.
  const port = await freePort()
  const stop = async (): Promise<void> => {
    const open = door
    door = null
    if (open) await new Promise(resolve => open.close(resolve).closeAllConnections())
  }
  const start = async (): Promise<void> => {
    const made = createServer((request, response) => {
      if (signedBy(request, SECRET)) serve(request, response)
      else response.writeHead(403).end('<Error><Code>SignatureDoesNotMatch</Code></Error>')
    })
    await new Promise<void>(resolve => made.listen(port, '127.0.0.1', resolve))
    door = made
  }
  await start()
  t.teardown(async () => {
    await stop()
    rmSync(directory, { recursive: true, force: true })
  })
  return {
    config: {
      endpoint: `http://127.0.0.1:${port}`,
      bucket,
      region: 'us-east-1',
      access_key: 'S3RVER',
      secret_key: SECRET,
    },
    keys: () =>
      readdirSync(join(directory, bucket), { recursive: true, encoding: 'utf8' })
        .filter(name => name.endsWith('._S3rver_object'))
        .map(name => name.slice(0, -'._S3rver_object'.length))
        .sort(),
    stop,
    start,
  }
}

/** Verifies the Signature Version 4 of a request: computes it from the received request and compares. */
function signedBy(request: IncomingMessage, secret: string): boolean {
  const authorization = request.headers.authorization ?? ''
  const [, scope = '', names = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})$/.exec(authorization) ??
    []
  const [path = '', query = ''] = (request.url ?? '').split('?')
  const headers = names.split(';').map(name => `${name}:${String(request.headers[name]).trim()}\n`)
  const canonical = [
    request.method,
    path,
    query
      .split('&')
      .map(pair => (pair === '' || pair.includes('=') ? pair : `${pair}=`))
      .sort()
      .join('&'),
    headers.join(''),
    names,
    request.headers['x-amz-content-sha256'],
  ].join('\n')
  const text = [
    'AWS4-HMAC-SHA256',
    request.headers['x-amz-date'],
    scope,
    createHash('sha256').update(canonical).digest('hex'),
  ].join('\n')
  const hmac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest()
  const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${secret}`)
  return names.includes('host') && hmac(key, text).toString('hex') === signature
}
