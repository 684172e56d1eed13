// The container image of a release, as an archive of an OCI image layout
// (https://github.com/opencontainers/image-spec/blob/main/image-layout.md): a layer with Debian's packages, which
// mmdebstrap makes, one with the platform, and the configuration. No container engine and no compiler takes part.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The user of the image, as numbers: Kubernetes can check that they are not those of root. */
export const IMAGE_USER = '990:990'
const NODE = '/usr/lib/strowger/node/bin/node'
const DATA = '/var/lib/strowger'
const SECOND = 1_000_000_000
/** Whether it lives, not whether it takes calls (that is /readyz): who drains must not be ended for it. */
const HEALTH = `fetch('http://127.0.0.1:'+(process.env.STROWGER_HTTP_PORT||8080)+'/healthz').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))`

/** How the platform starts in the image. Docker and Podman read `Healthcheck`, which OCI does not define. */
export const imageConfiguration = version => ({
  User: IMAGE_USER,
  ExposedPorts: { '5060/udp': {}, '5060/tcp': {}, '5061/tcp': {}, '8080/tcp': {} },
  Env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'LANG=C.UTF-8', `STROWGER_DATA=${DATA}`, 'STROWGER_BIND=0.0.0.0'],
  Cmd: [NODE, '/usr/lib/strowger/build/bundle/bin/main.js', 'up'],
  Healthcheck: {
    Test: ['CMD', NODE, '-e', HEALTH],
    Interval: 10 * SECOND,
    Timeout: 3 * SECOND,
    StartPeriod: 60 * SECOND,
  },
  Volumes: { [DATA]: {} },
  WorkingDir: DATA,
  Labels: { 'org.opencontainers.image.title': 'Strowger', 'org.opencontainers.image.version': version },
  StopSignal: 'SIGTERM',
})

/** Debian without a package manager's caches, with the user and the folder of the data. */
function debianLayer(file, packages) {
  const [user, group] = IMAGE_USER.split(':')
  const account = [
    `chroot "$1" groupadd --system --gid ${group} strowger`,
    `chroot "$1" useradd --system --uid ${user} --gid ${group} --home-dir ${DATA} --shell /usr/sbin/nologin strowger`,
    `chroot "$1" install -d -o strowger -g strowger -m 0700 ${DATA}`,
  ]
  const leave = ['man', 'locale', 'info', 'lintian'].map(name => `--dpkgopt=path-exclude=/usr/share/${name}/*`)
  const documents = ['--dpkgopt=path-exclude=/usr/share/doc/*', '--dpkgopt=path-include=/usr/share/doc/*/copyright']
  const mirrors = ['debian bookworm', 'debian bookworm-updates', 'debian-security bookworm-security']
  const words = [
    ...['--quiet', '--variant=essential', `--include=${packages.join(',')}`, ...leave, ...documents],
    ...[...account, 'rm -rf "$1"/var/cache/* "$1"/var/log/*'].map(hook => `--customize-hook=${hook}`),
    ...['bookworm', file, ...mirrors.map(name => `deb http://deb.debian.org/${name} main`)],
  ]
  execFileSync('mmdebstrap', words, { stdio: ['ignore', 'inherit', 'inherit'] })
}

/**
 * Makes the archive from the root folder of the Debian package. Two builds on the same state of Debian are equal.
 * `archive(folder, names, file)` packs names of a folder, sorted, owned by root, and with the time of the commit.
 */
export function makeImage({ root, out, work, version, architecture, epoch, packages, archive }) {
  const layout = join(work, 'image')
  const blobs = join(layout, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  const keep = bytes => {
    const hex = createHash('sha256').update(bytes).digest('hex')
    writeFileSync(join(blobs, hex), bytes)
    return { digest: `sha256:${hex}`, size: bytes.length }
  }
  const keepJson = (mediaType, value) => ({ mediaType, ...keep(Buffer.from(JSON.stringify(value))) })
  const layer = file => {
    const diff_id = `sha256:${createHash('sha256').update(readFileSync(file)).digest('hex')}`
    execFileSync('gzip', ['-n', '-9', file])
    const kept = keep(readFileSync(`${file}.gz`))
    rmSync(`${file}.gz`)
    return { diff_id, descriptor: { mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', ...kept } }
  }
  const [debian, platform] = ['debian.tar', 'platform.tar'].map(name => join(work, name))
  debianLayer(debian, packages)
  // Debian's /lib is a link, which a folder of that name would replace; it has the unit alone.
  archive(root, ['usr'], platform)
  const layers = [debian, platform].map(layer)
  const created = new Date(epoch * 1000).toISOString()
  const configuration = keepJson('application/vnd.oci.image.config.v1+json', {
    created,
    architecture,
    os: 'linux',
    config: imageConfiguration(version),
    rootfs: { type: 'layers', diff_ids: layers.map(({ diff_id }) => diff_id) },
    history: ['Debian 12', `Strowger ${version}`].map(created_by => ({ created, created_by })),
  })
  const manifest = keepJson('application/vnd.oci.image.manifest.v1+json', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: configuration,
    layers: layers.map(({ descriptor }) => descriptor),
  })
  const annotations = { 'org.opencontainers.image.ref.name': version }
  writeFileSync(
    join(layout, 'index.json'),
    JSON.stringify({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] }),
  )
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  const image = join(out, `strowger-${version}-linux-${architecture}.oci.tar`)
  archive(layout, ['blobs', 'index.json', 'oci-layout'], image)
  rmSync(layout, { recursive: true })
  return image
}
