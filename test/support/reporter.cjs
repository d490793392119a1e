/**
 * The spec reporter, which also accounts for skipped tests: it prints how many were skipped and why, and a skip that
 * test/allowed-skips.json does not list fails the run. In CI only missing recorded data excuses a skip, because CI
 * installs everything else. Writes a tally and every failure for .ci/run. CommonJS, because mocha loads reporters with
 * `require`.
 */
const { appendFileSync, existsSync, readFileSync } = require('node:fs')
const { relative, resolve, sep } = require('node:path')
const Mocha = require('mocha')

const root = resolve(__dirname, '../..')
const recordedData = resolve(root, '../shared/data')
const { needs, skips } = JSON.parse(readFileSync(resolve(root, 'test/allowed-skips.json'), 'utf8'))

/** What a skipped test of this file can be missing here, in one sentence, or undefined if nothing excuses the skip. */
function excuseFor(file) {
  const entry = skips.find((skip) => skip.file === file)
  const missing = (entry?.needs ?? []).filter((need) =>
    need === 'recorded data' ? !existsSync(recordedData) : !process.env.CI,
  )
  return missing.length === 0 ? undefined : missing.map((need) => needs[need]).join('; or ')
}

/** The file of a test or hook, as test/allowed-skips.json names it. */
const fileOf = (test) =>
  relative(root, test.file ?? test.parent?.file ?? '')
    .split(sep)
    .join('/')

module.exports = class Reporter extends Mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    this.output = options.reporterOptions?.output
    this.skipped = []
    this.failed = []
    if (runner.isParallelMode()) runner.workerReporter(resolve(__dirname, 'worker-reporter.cjs'))
    runner.on('fail', (test, error) => {
      // What fails outside any suite, such as a file that cannot be loaded or that ends its process, has no telling title.
      const title = test.fullTitle()
      if (test.parent?.root && test.file) test.title += ` (${fileOf(test)})`
      const [reason] = String(error?.stack ?? error).split(/\n\s+at /)
      this.failed.push(`${title} (${fileOf(test)}): ${reason}`)
    })
    runner.on('pending', (test) => {
      const file = fileOf(test)
      this.skipped.push({ title: test.fullTitle(), file, excuse: excuseFor(file) })
    })
  }
  /** Mocha calls this at each end of a run; a parallel run ends anew with each file that could not be run. */
  epilogue() {}
  /** Mocha calls this once, with the number of failures, and exits with the number that is passed on. */
  done(failures, exit) {
    super.epilogue()
    const { skipped, failed, output } = this
    const refused = skipped.filter(({ excuse }) => excuse === undefined)
    const reasons = new Map()
    for (const { excuse } of skipped) if (excuse) reasons.set(excuse, (reasons.get(excuse) ?? 0) + 1)
    for (const [reason, count] of reasons) process.stdout.write(`  ${count} skipped: ${reason}\n`)
    for (const { title, file } of refused) {
      process.stdout.write(`  skipped without an excuse in test/allowed-skips.json: ${title} (${file})\n`)
      failed.push(`${title} (${file}): skipped without an excuse`)
    }
    if (output)
      appendFileSync(
        output,
        [
          `passed ${this.stats.passes}`,
          `failed ${failed.length}`,
          `skipped ${skipped.length - refused.length}`,
          ...failed.map((failure) => `failure ${failure.replaceAll(/\s*\n/g, '\nfailure   ')}`),
          '',
        ].join('\n'),
      )
    exit(failures + refused.length)
  }
}
