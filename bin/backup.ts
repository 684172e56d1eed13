import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { Command } from 'commander'
import { runBare } from '../core/runtime/bare-child.ts'
import { VARIABLES } from '../core/runtime/config.ts'
import { databaseName } from '../core/runtime/database-url.ts'
import { renameDurably } from '../core/runtime/durable-files.ts'
import { machineOf } from '../core/runtime/machine.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { DATABASE_FILE, isDatabase, isEmptyDatabase, openState, type State } from '../core/state/index.ts'
import { ownFiles } from '../core/state/nodes/machines.ts'
import { isWritable, stamp } from './files.ts'
import { theseSettings } from './installation.ts'
import { platformProcess } from './pid-file.ts'
import { DUMP_FILE, dump, fill, hasDump, removeDump } from './postgres-dump.ts'
import { orSayWhy } from './say.ts'
import { inStaging, isStaging } from './staging.ts'
import { withCopy } from './state.ts'
import { give, progress, tell } from './terminal.ts'
import { hasState, markPlace } from './where-state-is.ts'

/**
 * Files and folders of an installation in addition to its database. Rows name the machine that has their files, so what
 * is restored goes on as that machine.
 */
const KEPT = ['master.key', 'machine.id', 'console-password', 'tls', 'recordings', 'runs']

interface Json {
  readonly json?: true
}

async function run(program: string, ...args: string[]): Promise<void> {
  const end = await runBare(program, args, { max_bytes: 1024 * 1024 })
  if (!end.ok) throw new StartRefused(end.detail)
}

/** tar(1) ends with 1 when a file grew while it was read, as recordings of running calls do. The archive is whole. */
const pack = (...args: string[]): Promise<void> => run('sh', '-c', 'tar -czf "$@" || [ $? = 1 ]', 'tar', ...args)

const TELL_MS = 5000
const MIB = 1024 * 1024

/** Says what `work` does, and again from time to time how much of it is done, in MiB as `doneBytes` counts. */
async function telling(what: string, done: string, doneBytes: () => number, work: () => Promise<void>): Promise<void> {
  progress(what)
  const timer = setInterval(() => progress(`${Math.floor(doneBytes() / MIB)} MiB are ${done}`), TELL_MS)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
}

const bytesOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** The bytes of the files in a folder; those that come and go meanwhile do not count. */
const bytesIn = (folder: string): number =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).reduce((sum, name) => sum + bytesOf(join(folder, name)), 0)

export const backupCommand = (): Command =>
  new Command('backup')
    .argument('<file>', 'archive to write, such as strowger.tar.gz')
    .option('--json', 'as JSON')
    .action((file: string, { json }: Json) =>
      withCopy(async (copyTo, config) => {
        const target = resolve(file)
        if (existsSync(target)) throw new StartRefused(`${file} exists already`)
        // Before the database is copied, which may take long.
        accessSync(dirname(target), constants.W_OK)
        const packed = `${target}.new`
        await inStaging(config.run_dir, async staging => {
          const { database_url } = config
          const name = database_url === null ? DATABASE_FILE : DUMP_FILE
          const copy = join(staging, name)
          const copied = () => bytesOf(copy)
          await telling('copying the database', 'copied', copied, () =>
            database_url === null ? copyTo(copy) : dump(database_url, staging),
          )
          const kept = KEPT.filter(name => existsSync(join(config.data_dir, name)))
          const written = () => bytesOf(packed)
          await telling(`packing the database, ${kept.join(', ')}`, 'written', written, () =>
            pack(packed, '-C', staging, name, '-C', config.data_dir, ...kept),
          )
          renameDurably(packed, target)
        }).finally(() => rmSync(packed, { force: true }))
        if (json) give(`${JSON.stringify({ file: target, bytes: statSync(target).size })}\n`)
        else tell(`${file} holds the database, keys and recordings: keep it as a secret\n`)
      }),
    )

export const restoreCommand = (): Command =>
  new Command('restore')
    .argument('<file>', 'archive that backup wrote')
    .option('--replace', 'move the present data aside')
    .option('--json', 'as JSON')
    .action((file: string, options: Json & { replace?: true }) =>
      orSayWhy(async () => {
        const { data_dir, run_dir, database_url } = theseSettings()
        if (!existsSync(file)) throw new StartRefused(`there is no file ${file}`)
        const running = await platformProcess(run_dir)
        if (running !== null) throw new StartRefused(`the platform runs (${running}): stop it first`)
        const replaces = hasState(data_dir)
        if (replaces && !options.replace)
          throw new StartRefused(`${data_dir} holds data: use --replace to move it aside`)
        mkdirSync(data_dir, { recursive: true })
        const aside = replaces ? asideOf(data_dir) : null
        const renames = aside !== null && dirname(aside) !== data_dir
        // The folder stays as it is until the archive has proven to be whole.
        await inStaging(renames ? dirname(data_dir) : data_dir, async staging => {
          const folder = join(staging, basename(data_dir))
          mkdirSync(folder)
          await unpack(file, folder, database_url)
          await giveTo(statSync(data_dir), folder)
          await run('sync', '--file-system', folder)
          // The folder of the database that is filled comes last: until then a second attempt finds all as it was.
          if (database_url !== null) await fillDatabase(database_url, folder)
          if (renames) {
            renameSync(data_dir, aside)
            renameSync(folder, data_dir)
            return
          }
          if (aside !== null) moveAside(data_dir, aside)
          moveInto(data_dir, folder)
        })
        markPlace({ data_dir, database_url })
        if (aside !== null && !options.json) tell(`the data so far is in ${aside}\n`)
        if (options.json) give(`${JSON.stringify({ data_dir, aside })}\n`)
        else tell(`${file} is restored in ${data_dir}\n`)
      }),
    )

/**
 * Where the data so far goes: beside its folder, or into it when that cannot be renamed, as a volume cannot.
 * @throws StartRefused when a part cannot be moved either
 */
function asideOf(data_dir: string): string {
  const name = `before-${stamp()}`
  if (!isMounted(data_dir) && isWritable(dirname(data_dir))) return `${data_dir}.${name}`
  const fixed = movedNames(data_dir).find(one => isMounted(join(data_dir, one)))
  if (fixed !== undefined) throw new StartRefused(`${join(data_dir, fixed)} is mounted: unmount it first`)
  return join(data_dir, name)
}

/** Reports whether a folder is where a file system is mounted, or another folder (proc_pid_mountinfo(5), field 5). */
function isMounted(folder: string): boolean {
  const octal = (one: string) => `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`
  const point = realpathSync(folder).replaceAll(/[\s\\]/g, octal)
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return mounts.some(line => line.split(' ')[4] === point)
}

/** What stays in the folder beside the archive's data: former data, and what ext4 keeps for repairs. */
const STAYS = /^before-|^lost\+found$/

/** The names in a folder that go aside. The database is first: what is left is no installation then. */
function movedNames(data_dir: string): string[] {
  const later = (name: string) => Number(name !== DATABASE_FILE)
  return readdirSync(data_dir)
    .filter(name => !isStaging(name) && !STAYS.test(name))
    .sort((a, b) => later(a) - later(b))
}

function moveAside(data_dir: string, aside: string): void {
  const names = movedNames(data_dir)
  mkdirSync(aside)
  for (const name of names) renameSync(join(data_dir, name), join(aside, name))
}

/** Unpacks an archive and examines what was in it. @throws StartRefused */
async function unpack(file: string, folder: string, database_url: string | null): Promise<void> {
  // Archives of older versions give other users read permission, and those of other machines belong to their users.
  const words = ['--no-same-permissions', '--no-same-owner', '-xzf', resolve(file), '-C', folder]
  const work = () => run('tar', ...words)
  await telling(`unpacking ${file}`, 'unpacked', () => bytesIn(folder), work).catch(error => {
    throw new StartRefused(`${file} is not a backup of Strowger: ${(error as Error).message}`)
  })
  progress('examining the database')
  if (database_url === null) return examine(folder)
  if (!hasDump(folder)) throw new StartRefused(`the archive has no copy of a PostgreSQL database: unset ${URL_NAME}`)
  if (!(await isEmptyDatabase(database_url)))
    throw new StartRefused(`the database ${databaseName(database_url)} is not empty: make a new one (createdb)`)
}

const URL_NAME = VARIABLES.database_url.name

/** Fills the empty database of an installation from the copy in a folder, and removes the copy. @throws StartRefused */
async function fillDatabase(database_url: string, folder: string): Promise<void> {
  progress('filling the database')
  await fill(database_url, folder)
  const state = await openState({ data_dir: folder, database_url, migrates: 'anybody' })
  try {
    await refuseDamage(state)
  } finally {
    await state.close()
  }
  removeDump(folder)
}

/** What root has restored belongs to the user of the platform. */
async function giveTo({ uid, gid }: Stats, folder: string): Promise<void> {
  if (process.geteuid?.() === 0 && uid !== 0) await run('chown', '-R', `${uid}:${gid}`, folder)
}

/** Moves what is in a folder into one without a database, which comes last: a power cut leaves no half installation. */
function moveInto(data_dir: string, folder: string): void {
  const names = readdirSync(folder).sort((a, b) => Number(a === DATABASE_FILE) - Number(b === DATABASE_FILE))
  for (const name of names) {
    rmSync(join(data_dir, name), { recursive: true, force: true })
    renameSync(join(folder, name), join(data_dir, name))
  }
}

async function examine(data_dir: string): Promise<void> {
  if (hasDump(data_dir))
    throw new StartRefused(`the archive has a PostgreSQL database: set ${URL_NAME} to an empty one`)
  if (!isDatabase(join(data_dir, DATABASE_FILE)))
    throw new StartRefused(`the archive has no database named ${DATABASE_FILE}`)
  const state = await openState({ data_dir })
  try {
    await refuseDamage(state)
    // Archives of older versions do not say which machine it was.
    await ownFiles(state, machineOf(data_dir).machine_id)
  } finally {
    await state.close()
  }
}

async function refuseDamage({ maintenance }: State): Promise<void> {
  const faults = await maintenance.faults()
  if (faults.length > 0) throw new StartRefused(`the database is damaged: ${faults[0]}`)
}
