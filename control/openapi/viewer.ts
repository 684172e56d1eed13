import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { gzipSync } from 'node:zlib'
import type { Context } from 'koa'
import { preconditionsHold } from '../http/conditional.ts'

/** Serves the API reference with swagger-ui. Scripts and styles load only from this server's files. */

type Page = (ctx: Context) => void

// Allows only this server as source, and data URLs for icons. swagger-ui sets styles from scripts, which CSP allows.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Strowger reference</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/assets/swagger-ui.css">
</head><body>
<p><a href="/docs/guides">All documentation</a> \u00b7 <a href="/v1/openapi.json">OpenAPI document</a> \u00b7 <a href="/docs/endpoints">endpoints with examples</a>
\u00b7 <a href="/docs/errors">errors</a></p>
<div id="reference"></div>
<noscript>The reference needs JavaScript; the <a href="/docs/endpoints">list of endpoints</a> does not.</noscript>
<script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/assets/start.js"></script>
</body></html>
`

// Without `validatorUrl: null` the viewer would send the document to swagger.io.
const START = `SwaggerUIBundle({
  url: '/v1/openapi.json',
  dom_id: '#reference',
  validatorUrl: null,
  deepLinking: true,
  docExpansion: 'list',
  filter: true,
  persistAuthorization: false,
})
`

interface Asset {
  readonly type: string
  readonly bytes: Buffer
  readonly zipped: Buffer
  readonly etag: string
}

const TYPES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'start.js': 'text/javascript; charset=utf-8',
} as const

const loaded = new Map<string, Asset>()

function asset(name: keyof typeof TYPES): Asset {
  const known = loaded.get(name)
  if (known) return known
  const resolve = createRequire(import.meta.url).resolve
  const bytes = name === 'start.js' ? Buffer.from(START) : readFileSync(resolve(`swagger-ui-dist/${name}`))
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
  const made = { type: TYPES[name], bytes, zipped: gzipSync(bytes), etag }
  loaded.set(name, made)
  return made
}

/** Returns `/docs` and its files. A file is read at its first request. */
export const viewerPages = (): Readonly<Record<string, Page>> => ({
  '/docs': ctx => {
    ctx.set('Content-Security-Policy', POLICY)
    ctx.type = 'text/html; charset=utf-8'
    ctx.body = PAGE
  },
  ...Object.fromEntries(
    (Object.keys(TYPES) as (keyof typeof TYPES)[]).map(name => [
      `/docs/assets/${name}`,
      (ctx: Context) => sendAsset(ctx, asset(name)),
    ]),
  ),
})

function sendAsset(ctx: Context, { type, bytes, zipped, etag }: Asset): void {
  ctx.set('ETag', etag)
  ctx.set('Cache-Control', 'public, max-age=3600')
  ctx.set('Vary', 'Accept-Encoding')
  const packed = ctx.acceptsEncodings('gzip', 'identity') === 'gzip'
  if (packed) ctx.set('Content-Encoding', 'gzip')
  ctx.type = type
  ctx.body = packed ? zipped : bytes
  if (!preconditionsHold(ctx)) ctx.status = 412
}
