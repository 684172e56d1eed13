// Which test files share a process. Starting Node.js and loading our modules costs more than most unit tests do.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Files that work this long get a process of their own, so that groups end at about the same time. */
const LONG_CPU_MS = 20_000
/** A group is cut when its files take longer than this together: the end of the run must not wait for one of them. */
const GROUP_MS = 90_000
const PLATFORM_GROUP_MS = 180_000

/** A group of stories with platforms of their own, one after the other, ends early enough to be placed anywhere. */
const STORIES_GROUP_MS = 60_000

/** Folders whose files may share a process. All other files test with processes and signals. */
const SHARED = /^test\/(unit|conformance|flows|adversary)\//
const STORIES = /^test\/(flows|adversary)\//
/** What a file says that wants a process, and so a platform, of its own. */
const OWN_PROCESS = /#own-process/
/** Stories on one platform share a process (docs/testing.md). */
const ON_SHARED_PLATFORM = /^import \{[^}]*\bsharedWorld\b/m
/**
 * Sources that change or observe the process: its environment, folder, signals, exit code, user, heap, and children,
 * unless they wait for a program to end.
 */
const PROCESS_WIDE = [
  /process\.(env\[[^\]]+\] =|chdir|exit|on\(|once\(|umask|set[eu]|kill|getActive|memoryUsage)|\bgc\(|#own-process/,
  /(?<!import \{ execFile \} from ')node:child_process/,
]

export function testsBelow(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(entry => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return testsBelow(path)
      return entry.name.endsWith('.test.ts') ? [path] : []
    })
}

/** The part of the tree that a test is about, such as core/domain or control. */
const areaOf = file => (STORIES.test(file) ? 'stories' : (/^test\/[^/]+\/(core\/[^/]+|[^/]+)/.exec(file)?.[1] ?? file))

/**
 * Returns the groups of files that share a process, each with the time that it is expected to take. The files of a
 * group are of one area, or use one platform.
 */
export function groupsOf(
  files,
  expected_ms,
  { alone = false, expected_cpu_ms = expected_ms, read = path => readFileSync(path, 'utf8') } = {},
) {
  const groups = []
  /** The groups of each area. */
  const begun = new Map()
  for (const file of files) {
    const file_ms = expected_ms(file)
    const text = read(file)
    const platform = ON_SHARED_PLATFORM.test(text) && !OWN_PROCESS.test(text)
    const shares =
      platform ||
      (SHARED.test(file) && expected_cpu_ms(file) <= LONG_CPU_MS && !PROCESS_WIDE.some(source => source.test(text)))
    if (alone || !shares) {
      groups.push({ files: [file], expected_ms: file_ms })
      continue
    }
    const area = platform ? 'platform' : areaOf(file)
    const most_ms = { platform: PLATFORM_GROUP_MS, stories: STORIES_GROUP_MS }[area] ?? GROUP_MS
    const open = begun.get(area) ?? []
    let group = open.find(({ expected_ms }) => expected_ms + file_ms <= most_ms)
    if (group === undefined) {
      group = { files: [], expected_ms: 0 }
      begun.set(area, [...open, group])
      groups.push(group)
    }
    group.files.push(file)
    group.expected_ms += file_ms
  }
  return groups
}
