/** The configuration has issues. The message lists all of them. */
export class ConfigError extends Error {
  readonly issues: readonly string[]
  constructor(issues: readonly string[]) {
    super(`The configuration is invalid:\n${issues.map((line) => `  - ${line}`).join('\n')}`)
    this.name = 'ConfigError'
    this.issues = issues
  }
}
