import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ParameterizedContext } from 'koa'
import type { Services } from './http/services.ts'

/** Where `scripts/console.mjs` leaves the built pages. */
const BUILT = join(dirname(fileURLToPath(import.meta.url)), '..', 'console')

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json; charset=utf-8',
}

interface File {
  readonly type: string
  readonly bytes: Buffer
  readonly brotli: Buffer | null
}

/** Every file of the build by its path below /console; few and small, so they stay in memory. */
function filesOf(folder: string): ReadonlyMap<string, File> {
  const files = new Map<string, File>()
  if (!existsSync(folder)) return files
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const type = TYPES[extname(name)]
    if (type === undefined || name.startsWith('.vite')) continue
    const path = join(folder, name)
    const packed = `${path}.br`
    files.set(`/${name}`, {
      type,
      bytes: readFileSync(path),
      brotli: existsSync(packed) ? readFileSync(packed) : null,
    })
  }
  return files
}

const notBuilt = 'The console has not been built: run `npm run setup`, then start again.\n'

/**
 * The console's pages below /console. Every path that is no file is the one page, which reads its own address.
 * A file under /assets has its hash in its name and may be kept for ever.
 */
export function consolePages({ settings }: Services, folder = BUILT) {
  const files = filesOf(folder)
  const policyFor = (host: string): string => {
    // The softphone speaks SIP to the edge's own ports on the same host.
    const edge = [`ws://${host}:*`, `wss://${host}:*`].join(' ')
    return [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "font-src 'self'",
      "media-src 'self' blob:",
      `connect-src 'self' ${edge}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; ')
  }
  return (ctx: ParameterizedContext): void => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.status = 405
      ctx.set('Allow', 'GET, HEAD')
      return
    }
    const below = ctx.path.slice('/console'.length)
    const isAsset = below.startsWith('/assets/')
    const file = files.get(below) ?? (isAsset ? undefined : files.get('/index.html'))
    ctx.set('Referrer-Policy', 'no-referrer')
    if (!file) {
      ctx.status = isAsset ? 404 : 503
      ctx.type = 'text/plain; charset=utf-8'
      ctx.body = isAsset ? 'There is no such file.\n' : notBuilt
      return
    }
    ctx.set('Content-Security-Policy', policyFor(hostOf(ctx.get('host'), settings.host)))
    ctx.set('Permissions-Policy', 'microphone=(self), camera=(), geolocation=()')
    ctx.set('X-Frame-Options', 'DENY')
    ctx.set('Cache-Control', isAsset ? 'public, max-age=31536000, immutable' : 'no-cache')
    ctx.set('Vary', 'Accept-Encoding')
    ctx.type = file.type
    const packed = file.brotli && ctx.acceptsEncodings('br', 'identity') === 'br' ? file.brotli : null
    if (packed) ctx.set('Content-Encoding', 'br')
    ctx.body = packed ?? file.bytes
  }
}

/** The host as the browser names it, without its port; anything that is no host name is replaced by our own. */
function hostOf(header: string, fallback: string): string {
  const match = /^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(?::\d+)?$/.exec(header)
  return match?.[1] ?? fallback
}
