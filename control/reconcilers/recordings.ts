import { rm } from 'node:fs/promises'
import { sealFile } from '../../core/runtime/sealed-file.ts'
import {
  dateRecordings,
  deletedWithFile,
  expireRecordings,
  fileRemoved,
  plainRecordings,
  recentlySealed,
  recordingSealed,
  SEALED,
} from '../../core/state/recording-storage.ts'
import { pruneSimulatedCalls } from '../../core/state/simulated-calls.ts'
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

/** Removes recordings whose time is over, and the files of those that were deleted by anyone. */
export const recordingRetention: Reconciler = {
  name: 'recording-retention',
  period_ms: 60_000,
  async run(services) {
    const { state, clock, log } = services
    await dateRecordings(state.db, 1000)
    const expired = await expireRecordings(state, clock.now())
    if (expired > 0) log.info({ recordings: expired }, 'recordings are deleted: their time is over')
    for (const { sid, file } of await deletedWithFile(state.db, 1000)) {
      await removeBoth(services, file)
      await fileRemoved(state.db, sid)
    }
    await pruneSimulatedCalls(state.db, clock.now() - 30 * DAY_MS)
    for (const { file } of await recentlySealed(state.db, clock.now() - DAY_MS))
      await rm(pathBelow(services.settings.data_dir, file.slice(0, -SEALED.length)), { force: true })
  },
}

async function removeBoth({ settings }: Services, file: string): Promise<void> {
  const plain = file.endsWith(SEALED) ? file.slice(0, -SEALED.length) : file
  for (const name of [plain, plain + SEALED]) await rm(pathBelow(settings.data_dir, name), { force: true })
}
