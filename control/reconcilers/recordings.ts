import { rm } from 'node:fs/promises'
import { sealFile } from '../../core/runtime/sealed-file.ts'
import {
  dateRecordings,
  deletedWithFile,
  expireRecordings,
  fileRemoved,
  objectKey,
  plainRecordings,
  recentlySealed,
  recordingSealed,
  recordingStored,
  SEALED,
  unstoredRecordings,
} from '../../core/state/calls/recording-storage.ts'
import { pruneSimulatedCalls } from '../../core/state/calls/simulated-calls.ts'
import type { Services } from '../http/services.ts'
import { pathBelow } from '../voice/recording-file.ts'
import type { Reconciler } from './reconciler.ts'

const BATCH = 50
const DAY_MS = 86_400_000

/** Encrypts finished recordings with the installation's key, a few seconds after they are complete. */
export const recordingSealing: Reconciler = {
  name: 'recording-sealing',
  period_ms: 3000,
  async run({ state, settings, log, clock }) {
    for (const { sid, file } of await plainRecordings(state.db, BATCH)) {
      const path = pathBelow(settings.data_dir, file)
      try {
        await sealFile(settings.master_key, path, path + SEALED)
      } catch (err) {
        // One file that cannot be read must not keep the others from being encrypted.
        log.warn({ err, recording: sid }, 'a recording could not be encrypted')
        // Gone, or encrypted just before a crash: the row points at the twin from now on, and is not tried again.
        if ((err as NodeJS.ErrnoException).code === 'ENOENT') await recordingSealed(state, sid, file, clock.now())
        continue
      }
      if (await recordingSealed(state, sid, file, clock.now())) await rm(path, { force: true })
      else await rm(path + SEALED, { force: true })
    }
  },
}

const FIRST_WAIT_MS = 5_000
const LONGEST_WAIT_MS = 300_000

/**
 * Moves encrypted recordings into the object store. What is there is as encrypted as it was here; the file here goes
 * when the row points at the object. A store that is down is tried again after longer and longer waits, and everything
 * stays here meanwhile.
 */
export function recordingUpload(): Reconciler {
  let wait_ms = FIRST_WAIT_MS
  let not_before_ms = 0
  const lost = new Set<string>()
  return {
    name: 'recording-upload',
    period_ms: 3000,
    async run({ state, settings, log, clock, objects }) {
      if (!objects || clock.monotonic_ms() < not_before_ms) return
      for (const { sid, file } of await unstoredRecordings(state.db, BATCH + lost.size)) {
        if (lost.has(sid)) continue
        const path = pathBelow(settings.data_dir, file)
        try {
          await objects.put(file, path)
        } catch (err) {
          // Its own file is gone: the others are not held up by it.
          if ((err as NodeJS.ErrnoException).code === 'ENOENT') {
            log.error({ err, recording: sid }, 'the file of a recording is gone')
            lost.add(sid)
            continue
          }
          log.warn({ err, recording: sid, again_in_ms: wait_ms }, 'a recording could not be moved to the object store')
          not_before_ms = clock.monotonic_ms() + wait_ms
          wait_ms = Math.min(LONGEST_WAIT_MS, wait_ms * 2)
          return
        }
        wait_ms = FIRST_WAIT_MS
        if (await recordingStored(state.db, sid, file)) await rm(path, { force: true })
        else await objects.remove(file)
      }
    },
  }
}

/** Removes recordings whose time is over, and the files of those that were deleted by anyone. */
export const recordingRetention: Reconciler = {
  name: 'recording-retention',
  period_ms: 60_000,
  async run(services) {
    const { state, clock, log } = services
    await dateRecordings(state.db, 1000)
    const expired = await expireRecordings(state, clock.now())
    if (expired > 0) log.info({ recordings: expired }, 'recordings are deleted: their time is over')
    await removeFiles(services)
    await pruneSimulatedCalls(state.db, clock.now() - 30 * DAY_MS)
    // What a crash left behind: the plain twin of an encrypted file, the file of an object.
    for (const { file } of await recentlySealed(state.db, clock.now() - DAY_MS)) {
      const [plain, sealed] = namesHere(file)
      await rm(pathBelow(services.settings.data_dir, plain), { force: true })
      if (objectKey(file) !== null) await rm(pathBelow(services.settings.data_dir, sealed), { force: true })
    }
  },
}

async function removeFiles({ state, settings, objects, log }: Services): Promise<void> {
  let store_down = false
  for (const { sid, file } of await deletedWithFile(state.db, 1000)) {
    const key = objectKey(file)
    if (key !== null) {
      if (store_down) continue
      try {
        if (!objects) throw new Error('no object store is configured')
        await objects.remove(key)
      } catch (err) {
        // The row keeps the key: it is tried again with the next run.
        log.warn({ err, recording: sid }, 'the object of a deleted recording could not be removed')
        store_down = true
        continue
      }
    }
    for (const name of namesHere(file)) await rm(pathBelow(settings.data_dir, name), { force: true })
    await fileRemoved(state.db, sid)
  }
}

/** Names below the data folder that a recording may have had, plain and encrypted. */
function namesHere(file: string): readonly [plain: string, sealed: string] {
  const name = objectKey(file) ?? file
  const plain = name.endsWith(SEALED) ? name.slice(0, -SEALED.length) : name
  return [plain, plain + SEALED]
}
