/**
 * What a process of a parallel run tells about a file: mocha's own events, and how long the file took, for `npm test --
 * --record`. Errors are reduced to text here, because they travel as JSON, which neither a bigint nor a cycle survives.
 */
const { appendFileSync } = require('node:fs')
const { join, relative, resolve, sep } = require('node:path')
const { inspect } = require('node:util')
const ParallelBuffered = require('mocha/lib/nodejs/reporters/parallel-buffered.cjs')

const root = resolve(__dirname, '../..')
const folder = process.env['TEST_RUN_FOLDER']
/** Causes may form a cycle. */
const MAX_CAUSES = 8

module.exports = class WorkerReporter extends ParallelBuffered {
  constructor(runner, options) {
    super(runner, options)
    const [file] = options.files
    const started = performance.now()
    runner.once('end', () => {
      if (!folder) return
      const seconds = (performance.now() - started) / 1000
      const name = relative(root, file).split(sep).join('/')
      appendFileSync(join(folder, 'seconds.jsonl'), `${JSON.stringify({ file: name, seconds })}\n`)
    })
  }
  createListener(eventName) {
    const listener = super.createListener(eventName)
    const sendable = (runnable, error) => {
      if (error === undefined) return listener(runnable)
      runnable.err = asText(error)
      return listener(runnable, runnable.err)
    }
    this.listeners.set(eventName, sendable)
    return sendable
  }
}

/** An error with what reporters print of it: its text, what was compared, and its causes. */
function asText(error, depth = 0) {
  const { name, message, stack, showDiff, actual, expected, cause } = error
  const text = (value) => (typeof value === 'string' ? value : inspect(value))
  return Object.assign(new Error(message), {
    name,
    stack,
    ...('expected' in error ? { showDiff, actual: text(actual), expected: text(expected) } : {}),
    ...(cause instanceof Error && depth < MAX_CAUSES ? { cause: asText(cause, depth + 1) } : {}),
  })
}
