// Sends the ledger in place: a mistake is named beside the form, which keeps what was chosen. Without this script the form
// leads to the report, or back here with the kind of mistake.
const form = document.querySelector('form.audit-form')
const button = form.querySelector('button')
const alert = form.querySelector('[role=alert]')

form.addEventListener('submit', (event) => {
  event.preventDefault()
  const label = button.textContent
  button.disabled = true
  button.textContent = 'Auditing…'
  alert.hidden = true
  send()
    .then((report) => location.assign(report), tell)
    .finally(() => {
      button.disabled = false
      button.textContent = label
    })
})

/** The address of the report. What is too large is not sent: the connection would end before the answer is read. */
async function send() {
  const most = Number(form.dataset.mostMegabytes)
  for (const { files } of form.querySelectorAll('input[type=file]'))
    if (files[0]?.size > most * 1e6) throw new Error(`${files[0].name} is larger than ${most} MB.`)
  const answer = await fetch(form.action, {
    method: 'POST',
    headers: { accept: 'application/json' },
    body: new FormData(form),
  })
  const body = await answer.json()
  if (answer.ok) return body.report_url
  const mistakes = (body.detail ?? []).map(({ loc, msg }) => `${loc.slice(1).join(', ')}: ${msg}`)
  throw new Error(mistakes.join('\n') || body.message)
}

function tell(error) {
  alert.textContent = error instanceof TypeError ? 'The connection broke. Please send it again.' : error.message
  alert.hidden = false
  alert.focus()
}
