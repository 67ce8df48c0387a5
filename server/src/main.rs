//! The program `haystore`.

fn main() -> std::process::ExitCode {
    haystore_server::cli::main()
}
