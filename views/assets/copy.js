// Adds a copy button to every block of code.
for (const figure of document.querySelectorAll('figure.code')) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', () => {
    navigator.clipboard.writeText(figure.querySelector('pre').textContent).then(
      () => (button.textContent = 'Copied'),
      () => (button.textContent = 'Copy failed'),
    )
    setTimeout(() => (button.textContent = 'Copy'), 1500)
  })
  if (navigator.clipboard) figure.append(button)
}
