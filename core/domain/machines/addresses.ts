/** A machine that runs, as far as its addresses matter. */
interface Addressed {
  readonly id: string
  /** Where peers see it. */
  readonly hosts: readonly string[]
  /** It speaks SIP with peers. */
  readonly edge: boolean
}

/** Names edges that have one address. Signaling finds the edge that a telephone registered with by its address. */
export function sharedAddresses(running: readonly Addressed[]): string[] {
  const edges = running.filter(({ edge }) => edge)
  const hosts = [...new Set(edges.flatMap(one => one.hosts))].sort()
  return hosts.flatMap(host => {
    const there = edges.filter(one => one.hosts.includes(host)).map(({ id }) => id)
    return there.length < 2 ? [] : [`${there.sort().join(' and ')} have one address, ${host}`]
  })
}
