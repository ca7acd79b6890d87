//! Servers that live as long as a test.

use super::World;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A server on a free loopback port; each connection is handled on a thread of its own.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// `handle` gets each connection with its number, from 0.
    pub(crate) fn start(handle: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, handle) = (Arc::clone(&stop), Arc::new(handle));
        let thread = std::thread::spawn(move || {
            for (number, connection) in listener.incoming().enumerate() {
                if flag.load(Ordering::SeqCst) {
                    return;
                }
                let (connection, handle) = (connection.unwrap(), Arc::clone(&handle));
                std::thread::spawn(move || handle(connection, number));
            }
        });
        Self { address, stop, thread: Some(thread) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Hands a connection to a program that serves one on its standard input and output.
pub(crate) fn serve(mut command: Command, connection: TcpStream) -> ExitStatus {
    let fd = OwnedFd::from(connection);
    command.stdin(fd.try_clone().unwrap()).stdout(fd).stderr(Stdio::null()).status().unwrap()
}

/// `git daemon` for one connection.
pub(crate) fn git_daemon(world: &World) -> Command {
    let mut command = world.hermetic("git");
    command.args(["daemon", "--inetd", "--export-all", "--informative-errors"]);
    command.arg(format!("--base-path={}", world.dir.path().display()));
    command
}

/// Carries a connection to a program on pipes, and after so many bytes of its answer does `then`;
/// when that returns, or the answer ends, the connection is cut.
pub(crate) fn serve_part(
    mut command: Command,
    connection: &TcpStream,
    bytes: usize,
    then: impl FnOnce(),
) {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let questions = connection.try_clone().unwrap();
    let pump = std::thread::spawn(move || carry(questions, to, usize::MAX));
    carry(from, connection, bytes);
    then();
    let _ = connection.shutdown(Shutdown::Both);
    let _ = child.kill();
    let _ = child.wait();
    let _ = pump.join();
}

/// Copies piece by piece as it comes (`std::io::copy` may splice, which waits for more).
fn carry(mut from: impl Read, mut to: impl Write, mut bytes: usize) {
    let mut buffer = [0; 8192];
    while bytes > 0 {
        let wanted = bytes.min(buffer.len());
        match from.read(&mut buffer[..wanted]) {
            Ok(0) | Err(_) => return,
            Ok(n) if to.write_all(&buffer[..n]).is_ok() => bytes -= n,
            Ok(_) => return,
        }
    }
}

/// One line of git's wire protocol.
pub(crate) fn pkt_line(text: &str) -> Vec<u8> {
    format!("{:04x}{text}", text.len() + 4).into_bytes()
}

/// Reads one line of git's wire protocol: empty for a flush, none at the end.
pub(crate) fn read_pkt_line(from: &mut impl Read) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).ok()?;
    let length = usize::from_str_radix(std::str::from_utf8(&length).ok()?, 16).ok()?;
    let mut line = vec![0; length.saturating_sub(4)];
    from.read_exact(&mut line).ok()?;
    Some(line)
}

/// A git server that advertises these references, whatever they are, and sends nothing else.
pub(crate) fn advertise(mut connection: TcpStream, refs: &[(String, String)], capabilities: &str) {
    let mut questions = connection.try_clone().unwrap();
    if read_pkt_line(&mut questions).is_none() {
        return;
    }
    let mut answer = Vec::new();
    for (n, (id, name)) in refs.iter().enumerate() {
        let capabilities = if n == 0 { format!("\0{capabilities}") } else { String::new() };
        answer.extend(pkt_line(&format!("{id} {name}{capabilities}\n")));
    }
    answer.extend_from_slice(b"0000");
    let _ = connection.write_all(&answer);
    let _ = std::io::copy(&mut questions, &mut std::io::sink());
}
