import type { Context } from 'koa'
import { publishedKey } from '../core/runtime/evidence.ts'
import type { ControlSettings } from './http/services.ts'

/** The public key by which everybody can check the evidence of calls. */
export function evidenceKeyPage({ master_key }: ControlSettings): (ctx: Context) => void {
  const pem = publishedKey(master_key)
  return ctx => {
    ctx.type = 'application/x-pem-file'
    ctx.body = pem
  }
}
