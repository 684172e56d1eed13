/** An expected reason not to start. The message is one sentence. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused'
}
