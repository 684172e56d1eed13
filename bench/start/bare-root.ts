import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { TREE } from '../../core/runtime/tree.ts'

/** Where a newcomer unpacks the tarball of Node.js. Debian's own package of it is too old. */
const PREFIX = 'usr/local'
const MIRROR = 'http://deb.debian.org/debian'
const DEBIAN = 'bookworm'
/** What a set-up prints when all is done. */
const UP = 'Strowger is up'

/**
 * Measures the seconds from `git clone` to "Strowger is up" in a root of Debian that has only git and the Node.js of
 * this machine. Takes root, debootstrap(8) and a mirror. Ports are those of this machine, so no platform may run.
 */
export async function fromBareRoot(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-bare-root-'))
  const root = join(folder, 'root')
  try {
    const making = performance.now()
    execFileSync('debootstrap', ['--variant=minbase', '--include=git,ca-certificates', DEBIAN, root, MIRROR], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    bringNode(root)
    bringWaysOut(root)
    execFileSync('git', ['clone', '--quiet', '--bare', TREE, join(root, 'strowger.git')])
    console.log(`the root was made in ${((performance.now() - making) / 1000).toFixed(0)} s`)
    return await timeIn(root)
  } finally {
    // What was mounted below it was so for the processes of the root alone.
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Lays Node.js as its tarball has it: the program, its headers and npm. */
function bringNode(root: string): void {
  const from = dirname(dirname(process.execPath))
  mkdirSync(join(root, PREFIX, 'bin'), { recursive: true })
  cpSync(process.execPath, join(root, PREFIX, 'bin/node'))
  for (const part of ['include/node', 'lib/node_modules/npm'])
    cpSync(join(from, part), join(root, PREFIX, part), { recursive: true, verbatimSymlinks: true })
  for (const name of ['npm', 'npx'])
    execFileSync('ln', ['-s', `../lib/node_modules/npm/bin/${name}-cli.js`, join(root, PREFIX, 'bin', name)])
}

/** Names, certificates and settings of npm by which this machine reaches Debian's and npm's packages. */
function bringWaysOut(root: string): void {
  const files = ['/etc/resolv.conf', process.env['NODE_EXTRA_CA_CERTS'] ?? '', join(homedir(), '.npmrc')]
  for (const file of files) if (existsSync(file)) cpSync(file, join(root, file), { dereference: true })
}

const STORY = `
mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" /bin/sh -ec '
  git clone --quiet /strowger.git /root/strowger
  cd /root/strowger
  exec npm start
'`

async function timeIn(root: string): Promise<number> {
  const started = performance.now()
  // The npm that runs this bench names its own folders, which the root does not have.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'))
  const env = {
    ...Object.fromEntries(inherited),
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: homedir(),
    STROWGER_SANDBOX: 'on',
  }
  const child = spawn('unshare', ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', STORY, 'sh', root], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
  let printed = ''
  const up = new Promise<number>(resolve => {
    child.stdout.setEncoding('utf8').on('data', text => {
      process.stdout.write(text)
      printed += text
      if (printed.includes(UP)) resolve((performance.now() - started) / 1000)
    })
  })
  const took = await Promise.race([up, ended.then(() => null)])
  // All processes of its namespace end with it.
  child.kill('SIGKILL')
  await ended
  if (took === null) throw new Error(`npm start ended in the bare root before "${UP}"`)
  return took
}
