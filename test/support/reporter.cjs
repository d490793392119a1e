/**
 * The spec reporter, and a small tally for CI. A skipped test counts as a failure there, so that a green run proves
 * everything ran; tests on recorded data are excepted where that data is absent (their title says "recorded").
 * CommonJS, because mocha requires its reporters.
 */
const { appendFileSync, existsSync } = require('node:fs')
const { resolve } = require('node:path')
const Mocha = require('mocha')

const recordedData = resolve(__dirname, '../../../shared/data')

module.exports = class Tally extends Mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    const { output } = options.reporterOptions ?? {}
    const skipped = []
    runner.on('pending', (test) => {
      const title = test.fullTitle()
      if (!/recorded/i.test(title) || existsSync(recordedData)) skipped.push(title)
    })
    runner.on('end', () => {
      const { passes = 0, failures = 0 } = runner.stats ?? {}
      for (const title of skipped) process.stdout.write(`  skipped, which counts as failed: ${title}\n`)
      if (output) appendFileSync(output, `passed ${passes}\nfailed ${failures + skipped.length}\n`)
    })
  }
}
