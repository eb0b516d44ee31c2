<?php
/**
 * Plugin Name: motamot chat
 * Description: Puts the chat of a motamot server into the corner of every page, or with [motamot_chat] into a page.
 * Requires PHP: 7.4
 * License: MIT
 *
 * In wp-config.php: define( 'MOTAMOT_CHAT', 'https://chat.example/' );
 */

if ( ! defined( 'ABSPATH' ) || ! defined( 'MOTAMOT_CHAT' ) ) {
	return;
}

add_action( 'wp_enqueue_scripts', function () {
	wp_enqueue_script( 'motamot-chat', MOTAMOT_CHAT . 'widget.js', array(), null, true );
} );

// WordPress writes the tag; what the widget is told stands on it.
add_filter( 'script_loader_tag', function ( $tag, $handle ) {
	if ( 'motamot-chat' !== $handle ) {
		return $tag;
	}
	$page = get_post();
	$box  = is_singular() && $page && has_shortcode( $page->post_content, 'motamot_chat' );
	return str_replace( ' src=', ( $box ? ' data-launcher="none"' : '' ) . ' async src=', $tag );
}, 10, 2 );

add_shortcode( 'motamot_chat', function ( $given ) {
	$given = shortcode_atts( array( 'assistant' => '', 'height' => '36em' ), $given );
	return sprintf(
		'<motamot-chat server="%s"%s style="height: %s"></motamot-chat>',
		esc_url( MOTAMOT_CHAT ),
		'' === $given['assistant'] ? '' : sprintf( ' assistant="%s"', esc_attr( $given['assistant'] ) ),
		esc_attr( $given['height'] )
	);
} );
