/** A source answered with something else than it should; the message is told under its name. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
}
