/**
 * The option tags that we act on, by role (RFC 3261 §19.2, §8.2.2.3). A request that requires any other gets 420, and
 * so does one that requires a tag which means nothing for its method.
 */
interface Role {
  /** The methods in which a peer may require the tag of us. */
  readonly required_in: readonly string[]
  /** Whether our requests and answers of calls announce it in Supported. */
  readonly announced: boolean
}

const OPTION_TAGS: Readonly<Record<string, Role>> = {
  /** Reliable provisional responses (RFC 3262). */
  '100rel': { required_in: ['INVITE'], announced: true },
  /** Session timers (RFC 4028). */
  timer: { required_in: ['INVITE', 'UPDATE'], announced: true },
  /** An INVITE that takes the place of a dialog (RFC 3891). */
  replaces: { required_in: ['INVITE'], announced: true },
  /** A REFER without a subscription (RFC 4488). */
  norefersub: { required_in: ['REFER'], announced: false },
}

/** The value of our Supported header in INVITEs and their answers. */
export const SUPPORTED = Object.entries(OPTION_TAGS)
  .flatMap(([tag, { announced }]) => (announced ? [tag] : []))
  .join(', ')

/** Returns the required tags that we do not support in this method, for the Unsupported header of a 420. */
export const unsupportedTags = (method: string, required: readonly string[]): string[] =>
  required.filter(tag => !OPTION_TAGS[tag.toLowerCase()]?.required_in.includes(method))
