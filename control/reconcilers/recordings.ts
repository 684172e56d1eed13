import { rm } from 'node:fs/promises'
import { machineOf } from '../../core/runtime/machine.ts'
import { sealFile } from '../../core/runtime/sealed-file.ts'
import { pathBelow } from '../../core/state/calls/recording-file.ts'
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
import type { Reconciler } from './reconciler.ts'

const BATCH = 50
const DAY_MS = 86_400_000

const hereOf = ({ settings }: Services): string => machineOf(settings.data_dir).machine_id

/** Encrypts finished recordings with the installation's key, a few seconds after they are complete. */
export const recordingSealing: Reconciler = {
  name: 'recording-sealing',
  period_ms: 3000,
  runs: 'each machine',
  async run(services) {
    const { state, settings, log, clock } = services
    for (const { sid, file } of await plainRecordings(state.db, hereOf(services), BATCH)) {
      const path = pathBelow(settings.data_dir, file)
      try {
        await sealFile(settings.master_key, path, path + SEALED)
      } catch (err) {
        // An unreadable file must not block the encryption of the others.
        log.warn({ err, recording: sid }, 'a recording could not be encrypted')
        // The file is missing, or was encrypted just before a crash. The row now names the encrypted file: no retry.
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
 * Moves encrypted recordings into the object store. They stay encrypted there. The local file is deleted once the row
 * names the object. While the store is down, files stay here and uploads back off.
 */
export function recordingUpload(): Reconciler {
  let wait_ms = FIRST_WAIT_MS
  let not_before_ms = 0
  const lost = new Set<string>()
  return {
    name: 'recording-upload',
    period_ms: 3000,
    runs: 'each machine',
    async run(services) {
      const { state, settings, log, clock, objects } = services
      if (!objects || clock.monotonic_ms() < not_before_ms) return
      for (const { sid, file } of await unstoredRecordings(state.db, hereOf(services), BATCH + lost.size)) {
        if (lost.has(sid)) continue
        const path = pathBelow(settings.data_dir, file)
        try {
          await objects.put(file, path)
        } catch (err) {
          // The file of this recording is missing. The others continue.
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

/** Deletes expired recordings. `recordingFiles` then removes their files. */
export const recordingRetention: Reconciler = {
  name: 'recording-retention',
  period_ms: 60_000,
  runs: 'once',
  async run({ state, clock, log }, goesOn) {
    await dateRecordings(state.db, 1000)
    const expired = await expireRecordings(state, clock.now(), goesOn)
    if (expired > 0) log.info({ recordings: expired }, 'recordings were deleted because their retention has ended')
    await pruneSimulatedCalls(state.db, clock.now() - 30 * DAY_MS)
  },
}

/** Removes the files of deleted recordings, and what a crash left behind. */
export const recordingFiles: Reconciler = {
  name: 'recording-files',
  period_ms: 60_000,
  runs: 'each machine',
  async run(services) {
    const { state, clock } = services
    await removeFiles(services)
    // Removes leftovers of a crash: the plain copy of an encrypted file, the local copy of an object.
    for (const { file } of await recentlySealed(state.db, hereOf(services), clock.now() - DAY_MS)) {
      const [plain, sealed] = namesHere(file)
      await rm(pathBelow(services.settings.data_dir, plain), { force: true })
      if (objectKey(file) !== null) await rm(pathBelow(services.settings.data_dir, sealed), { force: true })
    }
  },
}

async function removeFiles(services: Services): Promise<void> {
  const { state, settings, objects, log } = services
  let store_down = false
  for (const { sid, file } of await deletedWithFile(state.db, hereOf(services), 1000)) {
    const key = objectKey(file)
    if (key !== null) {
      if (store_down) continue
      try {
        if (!objects) throw new Error('no object store is configured')
        await objects.remove(key)
      } catch (err) {
        // The row keeps the key, so that the next run tries again.
        log.warn({ err, recording: sid }, 'the object of a deleted recording could not be removed')
        store_down = true
        continue
      }
    }
    for (const name of namesHere(file)) await rm(pathBelow(settings.data_dir, name), { force: true })
    await fileRemoved(state.db, sid)
  }
}

/** Returns the names of a recording below the data folder, plain and encrypted. */
function namesHere(file: string): readonly [plain: string, sealed: string] {
  const name = objectKey(file) ?? file
  const plain = name.endsWith(SEALED) ? name.slice(0, -SEALED.length) : name
  return [plain, plain + SEALED]
}
