import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { S3Config } from '../core/runtime/config.ts'
import { newId } from '../core/runtime/ids.ts'
import { createLog } from '../core/runtime/log.ts'
import { createObjectStore } from '../core/runtime/object-store.ts'
import { StoreError } from '../core/runtime/s3-requests.ts'

/** The result of one check. */
export interface Finding {
  readonly what: string
  readonly ok: boolean
  /** How to fix a failed check. */
  readonly mend: string
}

const PROBE = Buffer.from('Written by `strowger doctor`; may be deleted.\n')

/** Checks that the object store can keep recordings: writes, reads back and removes an object as for a recording. */
export async function examineStore(config: S3Config): Promise<Finding> {
  const what = `recordings can be kept in ${config.endpoint}, bucket ${config.bucket}`
  const store = createObjectStore(config, createLog('doctor', { log_level: 'silent' }))
  const folder = mkdtempSync(join(tmpdir(), 'strowger-doctor-'))
  const key = `strowger-doctor/${newId.uuid()}`
  let doing = 'writing'
  try {
    const path = join(folder, 'probe')
    writeFileSync(path, PROBE)
    await store.put(key, path)
    doing = 'reading'
    const read = await store.source(key).read(0, PROBE.length)
    if (!read.equals(PROBE))
      return { what, ok: false, mend: 'what was read is not what was written: is this an S3 store?' }
    doing = 'deleting'
    await store.remove(key)
    return { what, ok: true, mend: '' }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { what, ok: false, mend: `${doing} failed (${error.message}): ${mendOf(error, doing)}` }
  } finally {
    rmSync(folder, { recursive: true, force: true })
    await store.close()
  }
}

function mendOf({ status, message }: StoreError, doing: string): string {
  if (status === null) return 'look at STROWGER_S3_ENDPOINT, and at whether this machine reaches it'
  if (message.includes('NoSuchBucket') || status === 404) return 'make the bucket, or set STROWGER_S3_BUCKET'
  if (status === 301 || status === 307 || message.includes('AuthorizationHeaderMalformed'))
    return 'the bucket is in another region: set STROWGER_S3_REGION and STROWGER_S3_ENDPOINT'
  if (/SignatureDoesNotMatch|InvalidAccessKeyId/.test(message))
    return 'the key is wrong: set STROWGER_S3_ACCESS_KEY and STROWGER_S3_SECRET_KEY'
  if (message.includes('RequestTimeTooSkewed')) return 'the clock of this machine is wrong'
  if (status === 401 || status === 403) {
    const needed = { writing: 's3:PutObject', reading: 's3:GetObject', deleting: 's3:DeleteObject' }[doing]
    return `the key may not do that: allow it ${needed} on the bucket's objects`
  }
  return status >= 500 ? 'the store is in trouble: look at its own log' : 'look at the five STROWGER_S3_ variables'
}
